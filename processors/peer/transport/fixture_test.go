package transport

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token = "T0-s3cret"
	limit = time.Minute // of what must happen in a test
)

// instance is a peer over real HTTP, at a path of its server. The handlers are called if they are not nil.
type instance struct {
	t        testing.TB
	server   *httptest.Server
	base     string
	delegate http.HandlerFunc
	tasks    http.HandlerFunc
	card     http.HandlerFunc

	mu    sync.Mutex
	calls []string // method and path
}

// newInstance starts a peer whose card says what change says.
func newInstance(t testing.TB, change ...func(*peerwire.Card)) *instance {
	t.Helper()
	card := peerwire.Card{InstanceID: "tenant-a", AppVersion: "1", Delegate: true}
	for _, f := range change {
		f(&card)
	}
	p := &instance{
		t: t, delegate: success,
		card: func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("the card is public: a request for it must not have the token")
			}
			_, _ = w.Write(card.Body())
		},
	}
	p.server = httptest.NewServer(p)
	p.base = p.server.URL + "/base"
	t.Cleanup(p.server.Close)
	return p
}

func idempotent(c *peerwire.Card) { c.Idempotent = true }
func cancels(c *peerwire.Card)    { c.Cancel = true }

// success answers the reply to the task of the request.
func success(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req, refusal := peerwire.ReadRequest(body)
	if refusal != nil {
		w.WriteHeader(refusal.Status)
		return
	}
	_, _ = w.Write(replyTo(req.TaskID))
}

func replyTo(task string) []byte {
	return peerwire.Reply{TaskID: task, PeerInstanceID: "tenant-a", PeerRunID: "peer_1", Status: peerwire.StatusSuccess, Result: "42 rows"}.Body()
}

func (p *instance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/base")
	p.mu.Lock()
	p.calls = append(p.calls, r.Method+" "+path)
	delegate, tasks, card := p.delegate, p.tasks, p.card
	p.mu.Unlock()
	switch {
	case !ok:
		p.t.Errorf("request outside of the base URL: %s", r.URL.Path)
	case path == cardPath && card != nil:
		card(w, r)
	case path == delegatePath && delegate != nil:
		delegate(w, r)
	case strings.HasPrefix(path, tasksPath) && tasks != nil:
		tasks(w, r)
	default:
		http.NotFound(w, r)
	}
}

// on replaces the handler of POST /api/peer/delegate while the peer is in use.
func (p *instance) on(delegate http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delegate = delegate
}

// show replaces the card while the peer is in use.
func (p *instance) show(card http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.card = card
}

// count returns how many requests began with a text such as "POST".
func (p *instance) count(prefix string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

// configured returns settings with the peer "a" at a base URL.
func configured(base string) func() *peer.Settings {
	s := &peer.Settings{Enabled: true, InstanceID: "hq-1", Outbound: []peer.Outbound{{
		ID: "a", BaseURL: base, Token: peer.NewSecret(token), Timeout: limit,
	}}}
	return func() *peer.Settings { return s }
}

// sender returns a transport to the peer.
func (p *instance) sender(change ...func(*Config)) *Transport {
	return sender(p.t, configured(p.base), change...)
}

func sender(t testing.TB, current func() *peer.Settings, change ...func(*Config)) *Transport {
	var c Config
	for _, f := range change {
		f(&c)
	}
	tr := New(current, c)
	tr.pause = time.Millisecond
	t.Cleanup(tr.Close)
	return tr
}

// attempt is an attempt for the task "t/9" of the peer "a".
func attempt(change ...func(*sink.Attempt, *peerwire.Attempt)) sink.Attempt {
	a := sink.Attempt{Delivery: topics.Delivery{
		DeliveryID: "peer_1", SessionID: "s", Route: topics.Destination{Kind: Kind, Service: "a"}, Attempt: 1,
		LeaseUntilMS: time.Now().Add(10 * limit).UnixMilli(), ExpiresMS: time.Now().Add(10 * limit).UnixMilli(),
	}}
	body := peerwire.Attempt{
		TaskID: "t/9", Request: peerwire.Request{TaskID: "t/9", ParentInstanceID: "hq-1", Content: "count the rows"}.Body(),
		Timeout: limit, Deadline: time.Now().Add(10 * limit),
	}
	for _, f := range change {
		f(&a, &body)
	}
	a.Body = body.Body()
	return a
}

func repeat(_ *sink.Attempt, b *peerwire.Attempt)   { b.Repeat = true }
func repeated(a *sink.Attempt, _ *peerwire.Attempt) { a.Repeated = true }

func cancelOf(a *sink.Attempt, b *peerwire.Attempt) {
	a.Attempt, b.Cancel, b.Request = a.Attempt+1, true, nil
}

func number(n int64) func(*sink.Attempt, *peerwire.Attempt) {
	return func(a *sink.Attempt, _ *peerwire.Attempt) { a.Attempt = n }
}

func timeout(d time.Duration) func(*sink.Attempt, *peerwire.Attempt) {
	return func(_ *sink.Attempt, b *peerwire.Attempt) { b.Timeout = d }
}

// exchanged is what an attempt returned.
type exchanged struct {
	peerwire.Answer
	sink.Failure // zero if there was none
	failed       bool
}

// exchange makes an attempt and checks that nothing in what it returns is a secret.
func exchange(t testing.TB, tr *Transport, a sink.Attempt) exchanged {
	t.Helper()
	return exchangeIn(t, t.Context(), tr, a)
}

func exchangeIn(t testing.TB, ctx context.Context, tr *Transport, a sink.Attempt) (e exchanged) {
	t.Helper()
	response, err := tr.Exchange(ctx, a)
	if err != nil {
		var f *sink.Failure
		require.True(t, errors.As(err, &f))
		e.Failure, e.failed = *f, true
	}
	var readErr error
	e.Answer, readErr = peerwire.ReadAnswer(response)
	require.NoError(t, readErr)
	require.Equal(t, e.failed, e.Reply == nil && e.Code != peerwire.CodeCancelled || e.failed, "a failure has no reply")
	for _, text := range []string{e.Error(), e.Failure.Reason, e.Detail} {
		require.NotContains(t, text, token)
		require.NotContains(t, text, "127.0.0.1")
		require.NotContains(t, text, "http:")
	}
	return e
}

// hang blocks until the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// hangUp closes the connection without a response.
func hangUp(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = c.Close()
	}
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// quiet is a logger of a server whose clients fail on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// expiring returns a context whose deadline is when expire is called.
func expiring(t testing.TB) (ctx context.Context, expire func()) {
	c := &deadline{t.Context(), make(chan struct{})}
	return c, sync.OnceFunc(func() { close(c.over) })
}

type deadline struct {
	context.Context
	over chan struct{}
}

func (d *deadline) Done() <-chan struct{} { return d.over }

func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// afterPOST calls a function when the headers of the response to a POST have arrived.
type afterPOST struct {
	http.RoundTripper
	call func()
}

func (a afterPOST) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(r)
	if r.Method == http.MethodPost {
		a.call()
	}
	return response, err
}
