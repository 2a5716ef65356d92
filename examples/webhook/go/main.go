// This program receives webhooks of Placet and prints what they tell, each once.
//
//	WEBHOOK_SECRET=whsec_… go run ./examples/webhook/go 127.0.0.1:9000
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	if len(os.Args) != 2 || os.Getenv("WEBHOOK_SECRET") == "" {
		fmt.Fprintln(os.Stderr, "usage: WEBHOOK_SECRET=whsec_… receiver HOST:PORT")
		os.Exit(2)
	}
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	srv := &http.Server{Handler: &receiver{secret: os.Getenv("WEBHOOK_SECRET"), seen: map[string]bool{}}, ReadTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, srv.Serve(l))
	os.Exit(1)
}

type receiver struct {
	secret string

	mu sync.Mutex
	// seen are the ids of what was done. Keep them in your database, written in the
	// transaction that does the work: then a repeat does nothing, also after a restart.
	seen map[string]bool
}

const maxBody = 1 << 20

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if err := verify(r.secret, req.Header, body, time.Now()); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if err := r.once(req.Header.Get("webhook-id"), body); err != nil {
		http.Error(w, "it was not done", http.StatusInternalServerError) // and is sent again
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// once does the work of a delivery that was not seen yet.
func (r *receiver) once(id string, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		return nil
	}
	var event struct{ Type, Subject string }
	if err := json.Unmarshal(body, &event); err != nil {
		return err
	}
	fmt.Println(event.Type, event.Subject)
	r.seen[id] = true
	return nil
}
