// Command refregd is an in-memory registry that has the referrers API, for tests and benchmarks.
//
//	refregd 127.0.0.1:0
//
// It prints the address it listens on, then one line for each request that it has answered:
// method, status, path and query. The registry is go-containerregistry's, with the option that
// `crane registry serve` leaves off, plus the OCI-Subject header by which a server says that it
// has indexed a referrer (distribution-spec 1.1, "Pushing Manifests with Subject").
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

const maxManifest = 4 << 20

// answer remembers the status that a handler gave.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// subject reads a manifest being put and returns the digest that it refers to, if any.
func subject(r *http.Request) (string, error) {
	if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
		return "", nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxManifest))
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var manifest struct{ Subject struct{ Digest string } }
	if json.Unmarshal(body, &manifest) != nil {
		return "", nil // the registry itself says what is wrong with it
	}
	return manifest.Subject.Digest, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: refregd HOST:PORT")
	}
	silent := log.New(io.Discard, "", 0)
	inner := registry.New(registry.WithReferrersSupport(true), registry.Logger(silent))
	var out sync.Mutex
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest, err := subject(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if digest != "" {
			w.Header().Set("OCI-Subject", digest)
		}
		a := &answer{ResponseWriter: w, status: http.StatusOK}
		inner.ServeHTTP(a, r)
		out.Lock()
		defer out.Unlock()
		fmt.Println(r.Method, a.status, r.URL.RequestURI())
	})))
}
