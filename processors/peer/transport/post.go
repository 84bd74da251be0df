package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
)

// The paths of a peer, after its base URL.
const (
	delegatePath = "/api/peer/delegate"
	tasksPath    = "/api/peer/tasks/"
	cardPath     = "/.well-known/hybridclaw-peer.json"
)

// maxError is the largest body of a response with an error, in bytes. A longer one has no text.
const maxError = 64 << 10

// post sends a task and returns its outcome.
func (t *Transport) post(ctx context.Context, peer peer.Outbound, task peerwire.Request) outcome {
	r, err := t.request(ctx, http.MethodPost, peer, delegatePath, task.Body())
	if err != nil {
		return failed(peerwire.CodeUnreachable, "request cannot be made", final)
	}
	r.Header.Set("Content-Type", "application/json")
	// A peer without this preference answers when the run has ended. There is no Idempotency-Key: net/http sends a request
	// with one again when a connection is lost, also to a peer that would run the task twice.
	r.Header.Set("Prefer", "respond-async, wait="+strconv.Itoa(waitOf(ctx)))
	response, body, lost := t.do(ctx, r, peerwire.MaxReply)
	switch {
	case lost != nil:
		return *lost
	case response.StatusCode == http.StatusAccepted:
		if !own(peer.BaseURL, response) {
			return malformed(response.StatusCode)
		}
		return t.poll(ctx, peer, task.TaskID)
	case response.StatusCode >= 200 && response.StatusCode < 300:
		return replied(response.StatusCode, body, task.TaskID)
	default:
		return refused(response, body, t.clock.Now())
	}
}

// own reports whether the location of a response is that of a task of the peer. The location itself is not used: the path of a
// task is known.
func own(base string, response *http.Response) bool {
	at, err := response.Location()
	b, baseErr := url.Parse(base)
	return err == nil && baseErr == nil && at.Scheme == b.Scheme && strings.EqualFold(at.Host, b.Host) && at.User == nil &&
		strings.HasPrefix(at.EscapedPath(), b.EscapedPath()+tasksPath)
}

// request returns a request with the peer's token.
func (t *Transport) request(ctx context.Context, method string, peer peer.Outbound, path string, body []byte) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, peer.BaseURL+path, content)
	if err != nil {
		return nil, errors.New("transport: the peer's URL is not valid") // the error quotes the address
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+peer.Token.Reveal())
	return r, nil
}

// taskPath returns the path of a task.
func taskPath(taskID string) string {
	if taskID == "." || taskID == ".." {
		return tasksPath + strings.Repeat("%2E", len(taskID)) // an HTTP server removes dots
	}
	return tasksPath + url.PathEscape(taskID)
}

// maxWait is the longest time for which a peer is asked to hold a request. Proxies often end requests after a minute.
const maxWait = 25 * time.Second

// waitOf returns for how many seconds the peer is asked to hold a request: half of the time that is left.
func waitOf(ctx context.Context) int {
	wait := maxWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	return int(max(wait, 0) / time.Second)
}

// network is what is known of a request without a complete response.
type network struct {
	reason   string
	answered bool // the headers of a response have arrived
	sent     bool // the request may have been written
}

// do makes a request and reads the body of the response, at most max bytes, or maxError of an error. lost is nil if the status of
// the response can be used.
func (t *Transport) do(ctx context.Context, r *http.Request, max int64) (response *http.Response, body []byte, lost *outcome) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{
		// The client connects again after it found a connection closed on which nothing was written.
		GetConn:      func(string) { sent.Store(false) },
		GotConn:      func(httptrace.GotConnInfo) { sent.Store(true) },
		WroteHeaders: func() { sent.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { sent.Store(true) },
	}
	response, err := t.client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		o := interruption(ctx, network{reason: sink.NetworkReason(err), sent: sent.Load()})
		return nil, nil, &o
	}
	content := response.Body
	defer func() { _ = content.Close() }() // what was read counts
	good := response.StatusCode >= 200 && response.StatusCode < 300
	if !good {
		max = maxError
	}
	body, err = io.ReadAll(io.LimitReader(content, max+1))
	if err != nil && good {
		o := interruption(ctx, network{reason: sink.NetworkReason(err), answered: true, sent: true})
		return nil, nil, &o
	}
	return response, body, nil
}

// errCancelled is the cause with which the context of a cancelled attempt ends.
var errCancelled = fmt.Errorf("transport: %s", reasonCancelled)

// interruption returns the outcome of a request without a complete response.
func interruption(ctx context.Context, n network) outcome {
	o := failed(peerwire.CodeUnreachable, n.reason)
	o.answer.Answered, o.answer.Reached = n.answered, n.sent
	switch {
	case errors.Is(context.Cause(ctx), errCancelled):
		o.answer.Code, o.failure.Reason, o.failure.Final = peerwire.CodeCancelled, reasonCancelled, true
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		o.answer.Code, o.failure.Reason = peerwire.CodeTimeout, sink.ReasonTimeout
	case ctx.Err() != nil:
		o.failure.Reason = delivery.ReasonInterrupted
	}
	return o
}
