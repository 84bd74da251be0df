// Package platformtest is what the tests of adapters share: a receiver, a fake of a platform, and helpers.
package platformtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// Bounds of require.Eventually.
const (
	WaitFor = time.Minute
	Tick    = time.Millisecond
)

// Secret is a part of all secrets of tests. Errors and logs must not contain it.
const Secret = "s3cret"

// Quick returns a clock whose waits end after a thousandth of their time.
func Quick() clock.Clock { return quick{clock.System()} }

type quick struct{ clock.Clock }

func (q quick) NewTicker(d time.Duration) clock.Ticker { return q.Clock.NewTicker(max(d/1000, 1)) }

// Inbox is a receiver that fails while Err is set, and as often as NewInbox was told. Without concurrent events, its fields can be read.
type Inbox struct {
	Err error
	// Tried are the events, and Got those that it has taken. Came gets an element for each of these, if it is not nil.
	Tried, Got []adapter.Inbound
	Came       chan struct{}

	mu    sync.Mutex
	fails int
}

// NewInbox returns a receiver that fails so often.
func NewInbox(fails int) *Inbox { return &Inbox{fails: fails, Came: make(chan struct{}, 1000)} }

// Receive implements adapter.Receiver.
func (i *Inbox) Receive(_ context.Context, in adapter.Inbound) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Tried = append(i.Tried, in)
	if i.Err != nil {
		return i.Err
	}
	if i.fails > 0 {
		i.fails--
		return fmt.Errorf("brokers are away")
	}
	i.Got = append(i.Got, in)
	select {
	case i.Came <- struct{}{}:
	default:
	}
	return nil
}

// Failing sets Err.
func (i *Inbox) Failing(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Err = err
}

// All returns Got.
func (i *Inbox) All() []adapter.Inbound {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]adapter.Inbound(nil), i.Got...)
}

// Events returns the IDs of the events that were taken.
func (i *Inbox) Events() (ids []string) {
	for _, in := range i.All() {
		ids = append(ids, in.Event)
	}
	return ids
}

// With returns a value with changes.
func With[T any](v T, changes ...func(*T)) T {
	for _, change := range changes {
		change(&v)
	}
	return v
}

// Open opens the adapter of a configuration with changes. It is closed when the test ends.
func Open[C any, A interface{ Close() }](t testing.TB, open func(C) (A, error), c C, changes ...func(*C)) A {
	t.Helper()
	a, err := open(With(c, changes...))
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a
}

// Refused returns the errors of opening a configuration with each of several changes. None may contain a secret.
func Refused[C, A any](t testing.TB, open func(C) (A, error), good C, bad map[string]func(*C)) map[string]error {
	t.Helper()
	errs := map[string]error{}
	for name, change := range bad {
		_, err := open(With(good, change))
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), Secret)
		errs[name] = err
	}
	return errs
}

// Start runs an adapter until the test ends or stop is called.
func Start(t testing.TB, a interface {
	Run(ctx context.Context, to adapter.Receiver) error
}, to adapter.Receiver,
) (stop func()) {
	t.Helper()
	return Run(t, func(ctx context.Context) error { return a.Run(ctx, to) })
}

// Run runs a function until the test ends or stop is called. It must return nil then.
func Run(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// Failure returns the failure that an error is.
func Failure(t testing.TB, err error) adapter.Failure {
	t.Helper()
	var f *adapter.Failure
	require.ErrorAs(t, err, &f)
	require.NotContains(t, f.Error(), Secret)
	return *f
}

// Logs returns a logger and what it logs.
func Logs() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.New(core), logs
}

// Reasons returns the reasons in a log, whose entries must not contain a secret or one of several texts.
func Reasons(t testing.TB, logs *observer.ObservedLogs, texts ...string) (reasons []any) {
	t.Helper()
	for _, e := range logs.All() {
		for _, text := range append(texts, Secret) {
			require.NotContains(t, fmt.Sprint(e), text)
		}
		if r, ok := e.ContextMap()["reason"]; ok {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

// Serve returns the response to a request.
func Serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Cut cuts the connection of a request.
func Cut(w http.ResponseWriter) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}

// Answer answers a request. The headers are names and values by turns.
func Answer(w http.ResponseWriter, status int, body string, headers ...string) {
	for i := 0; i < len(headers); i += 2 {
		w.Header().Set(headers[i], headers[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Body returns the members of a body, which must be JSON; nil if there is none.
func Body(t testing.TB, r *http.Request) (members map[string]any) {
	raw, err := io.ReadAll(r.Body)
	if len(raw) == 0 {
		return nil
	}
	if err != nil || json.Unmarshal(raw, &members) != nil || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("body of %s: %v", r.URL.Path, err)
	}
	return members
}

// Vendor is a fake of a platform, which keeps the calls that it gets. A test of an adapter embeds it and implements http.Handler.
type Vendor[C any] struct {
	*httptest.Server
	// Answer answers the n-th call, from 1. It returns false to have the vendor answer.
	Answer func(n int, c C, w http.ResponseWriter) bool

	mu    sync.Mutex
	calls []C
	once  map[string]string
}

// Listen starts the server, until the test ends.
func (v *Vendor[C]) Listen(t testing.TB, h http.Handler) {
	v.Server = httptest.NewServer(h)
	t.Cleanup(v.Close)
}

// Call keeps a call. It returns its number, and whether Answer has answered.
func (v *Vendor[C]) Call(c C, w http.ResponseWriter) (n int, answered bool) {
	v.mu.Lock()
	v.calls = append(v.calls, c)
	n, answer := len(v.calls), v.Answer
	v.mu.Unlock()
	return n, answer != nil && answer(n, c, w)
}

// Got returns the calls.
func (v *Vendor[C]) Got() []C {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]C(nil), v.calls...)
}

// Answers has all calls answered with a status, headers and a body.
func (v *Vendor[C]) Answers(status int, header map[string]string, body string) {
	v.Answer = func(_ int, _ C, w http.ResponseWriter) bool {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		Answer(w, status, body)
		return true
	}
}

// Once returns the first ID that it got for a key, as platforms do that recognise repeats.
func (v *Vendor[C]) Once(key, id string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.once == nil {
		v.once = map[string]string{}
	}
	if v.once[key] == "" {
		v.once[key] = id
	}
	return v.once[key]
}
