package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/turntable-streams/turntable/processors"
)

// openHealth answers GET /healthz: 200 while all groups run and the WebSocket reads the topics, else 503. The body has the
// state and lag of the first group, or of the group that does not run, without errors, which may name sessions: those are in
// the log. It is plain HTTP, for probes.
func (p *pipeline) openHealth(shown *stage) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", p.serveHealth)
	return p.listen(shown, "health", p.health, nil, mux, nil)
}

func (p *pipeline) serveHealth(w http.ResponseWriter, r *http.Request) {
	for _, g := range p.groups {
		if g.Health().State != processors.Running {
			processors.HealthHandler(g).ServeHTTP(w, r)
			return
		}
	}
	if p.screen != nil {
		select {
		case <-p.screen.Ready():
		default: // the topics do not exist yet, or no broker is available
			http.Error(w, "the WebSocket does not read the topics yet", http.StatusServiceUnavailable)
			return
		}
	}
	if len(p.groups) > 0 {
		processors.HealthHandler(p.groups[0]).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"state":"running"}`))
}

// checkHealth asks the health check of a process on this machine, at the HEALTH_ADDR that it was started with. A container
// image without a shell needs it for its own health check.
func checkHealth(ctx context.Context) error {
	addr, err := address("HEALTH_ADDR")
	switch {
	case err != nil:
		return err
	case addr == "":
		return errors.New("HEALTH_ADDR is not set: the process has no health check")
	}
	host, port, _ := net.SplitHostPort(addr)
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("HEALTH_ADDR: %w", err)
	}
	transport := &http.Transport{Proxy: nil, DisableKeepAlives: true} // never through a proxy: it is this machine
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health: status %d", response.StatusCode)
	}
	return nil
}
