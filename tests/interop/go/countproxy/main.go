// Command countproxy stands before a registry, remembers every request and can be slow.
//
//	countproxy 127.0.0.1:0 127.0.0.1:5000
//
// It prints the address it listens on. Two paths are its own:
//
//	POST /_begin?wait=20ms   forget what was seen; from now on wait so long before passing on
//	GET  /_seen              what was seen since, as a JSON list, in the order of arrival
//
// Clients' Host headers are passed on, so that a Location that the registry makes leads back here.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"sync"
	"time"
)

type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Query  string `json:"query"`
	Status int    `json:"status"` // 0 while it is under way, or when either side went away
	Sent   int64  `json:"sent"`   // bytes of body that the client sent
	Got    int64  `json:"got"`    // bytes of body that the client was given
}

type proxy struct {
	mu   sync.Mutex
	seen []*request
	wait time.Duration
	next *httputil.ReverseProxy
}

type counted struct {
	io.ReadCloser
	n *int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	*c.n += int64(n)
	return n, err
}

type answer struct {
	http.ResponseWriter
	status int
	n      int64
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	n, err := a.ResponseWriter.Write(b)
	a.n += int64(n)
	return n, err
}

func (p *proxy) begin(w http.ResponseWriter, r *http.Request) {
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.wait = nil, wait
}

func (p *proxy) report(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append([]*request{}, p.seen...)
	if err := json.NewEncoder(w).Encode(all); err != nil {
		log.Print(err)
	}
}

func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	one := &request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery}
	p.mu.Lock()
	p.seen = append(p.seen, one)
	wait := p.wait
	p.mu.Unlock()
	time.Sleep(wait)
	var sent int64
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = counted{r.Body, &sent}
	}
	a := &answer{ResponseWriter: w, status: http.StatusOK}
	p.next.ServeHTTP(a, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	one.Status, one.Sent, one.Got = a.status, sent, a.n
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: countproxy HOST:PORT REGISTRY")
	}
	target := os.Args[2]
	p := &proxy{next: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", target, r.In.Host
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		ErrorLog:  log.New(io.Discard, "", 0),
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /_begin", p.begin)
	mux.HandleFunc("GET /_seen", p.report)
	mux.HandleFunc("/", p.pass)
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, mux))
}
