package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	ws "github.com/coder/websocket"

	"github.com/turntable-streams/turntable/processors/turn/token"
)

// sample is what honest clients measured.
type sample struct {
	latencies []time.Duration
	failed    int
	first     error // of the failed
}

func (s *sample) add(o sample) {
	s.latencies, s.failed, s.first = append(s.latencies, o.latencies...), s.failed+o.failed, cmp.Or(s.first, o.first)
}

func (s sample) quantile(q float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	slices.Sort(s.latencies)
	return s.latencies[int(float64(len(s.latencies)-1)*q)]
}

// interval is the time between the requests of an honest client.
const interval = 100 * time.Millisecond

// measure lets n honest clients use a door for a time.
func measure(ctx context.Context, door, address, secret string, n int, d time.Duration) sample {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var (
		mu      sync.Mutex
		all     sample
		running sync.WaitGroup
	)
	for i := range n {
		running.Go(func() {
			client := newClient(door, address, secret, i)
			defer client.close()
			select {
			case <-time.After(interval * time.Duration(i) / time.Duration(n)): // not all at once
			case <-ctx.Done():
			}
			for ctx.Err() == nil {
				begun := time.Now()
				err := client.use(context.WithoutCancel(ctx))
				took := time.Since(begun)
				mu.Lock()
				if all.latencies = append(all.latencies, took); err != nil {
					all.failed++
					all.first = cmp.Or(all.first, err)
				}
				mu.Unlock()
				select {
				case <-time.After(interval):
				case <-ctx.Done():
				}
			}
		})
	}
	running.Wait()
	return all
}

// honest is a client that keeps its connection.
type honest struct {
	door, address, name, credential string
	secret                          string
	http                            http.Client
	socket                          *ws.Conn
}

func newClient(door, address, secret string, n int) *honest {
	h := &honest{door: door, address: address, name: fmt.Sprintf("honest-%d", n), secret: secret}
	h.credential = h.name
	if door == "callback" {
		agent, now := "pilot", time.Now()
		h.credential, _ = token.Mint(secret, token.Claims{
			SessionID: h.name, ToolUseID: "call", Agent: &agent, IssuedAt: now, Expires: now.Add(time.Hour),
		})
	}
	h.http.Transport = &http.Transport{}
	return h
}

func (h *honest) close() {
	h.http.CloseIdleConnections()
	if h.socket != nil {
		_ = h.socket.CloseNow()
	}
}

// useTimeout is longer than any door takes to refuse a request.
const useTimeout = 30 * time.Second

// use sends a request and reads its answer.
func (h *honest) use(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	if h.door == "websocket" {
		return h.subscribe(ctx)
	}
	method, path := http.MethodGet, listOf(h.door, h.name)
	var body string
	var headers map[string]string
	if path == "" {
		method, path = http.MethodPost, pathOf(h.door)
		body, headers = bodyOf(h.door, h.name, h.secret)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+h.address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Authorization", "Bearer "+h.credential)
	r.Header.Set("Content-Type", "application/json")
	answer, err := h.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// signed are the headers of a request of Slack.
func signed(secret, body string) map[string]string {
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + at + ":" + body)) // a hash returns no error
	return map[string]string{"X-Slack-Request-Timestamp": at, "X-Slack-Signature": "v0=" + hex.EncodeToString(mac.Sum(nil))}
}

// subscribe subscribes to a session of another user. Without Kafka the refusal is the only frame that the server sends.
func (h *honest) subscribe(ctx context.Context) (err error) {
	if h.socket == nil {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.address)
		if err != nil {
			return err
		}
		if h.socket, err = upgrade(ctx, c, h.name); err != nil {
			_ = c.Close()
			return err
		}
	}
	if err = h.socket.Write(ctx, ws.MessageText, []byte(`{"type":"subscribe","session_id":"another"}`)); err == nil {
		_, _, err = h.socket.Read(ctx)
	}
	if err != nil {
		_ = h.socket.CloseNow()
		h.socket = nil
	}
	return err
}

// upgrade makes a connection a WebSocket.
func upgrade(ctx context.Context, c net.Conn, name string) (*ws.Conn, error) {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil },
	}}
	socket, _, err := ws.Dial(ctx, "ws://"+c.RemoteAddr().String(), &ws.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + name}},
	})
	return socket, err
}
