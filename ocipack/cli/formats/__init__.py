"""The forms in which a result can be written: one module each, loaded when it is asked for.

Every module has `write(result) -> str`. Text from elsewhere (names, messages, paths) is hostile:
each form escapes it so that it stays text there.
"""
