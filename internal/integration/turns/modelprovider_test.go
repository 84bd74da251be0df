package turns

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"
)

// provider is a model provider. It runs in the process of the test, so that it still counts the calls of workers that are
// killed.
type provider struct {
	server *httptest.Server
	length func(session string) time.Duration

	mu    sync.Mutex
	calls map[string][]*modelCall // by step
}

// modelCall is one call of the model.
type modelCall struct {
	session, worker string
	decided         time.Time // when the worker called its model function; later, the call cannot be prevented
	began, ended    time.Time // ended is zero while the call runs
	answered        bool      // false if the worker has closed the connection before
}

// newProvider starts a provider. length returns how long the model takes to answer a session.
func newProvider(t testing.TB, length func(session string) time.Duration) *provider {
	p := &provider{length: length, calls: map[string][]*modelCall{}}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

// ServeHTTP answers a call after its length, unless the worker closes the connection.
func (p *provider) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	decided, _ := strconv.ParseInt(q.Get("decided"), 10, 64)
	c := &modelCall{session: q.Get("session"), worker: q.Get("worker"), decided: time.Unix(0, decided), began: time.Now()}
	p.mu.Lock()
	p.calls[q.Get("step")] = append(p.calls[q.Get("step")], c)
	p.mu.Unlock()
	timer := time.NewTimer(p.length(c.session))
	defer timer.Stop()
	answered := false
	select {
	case <-timer.C:
		answered = true
	case <-r.Context().Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.ended, c.answered = time.Now(), answered
}

// callModel calls the provider at a URL for a step.
func callModel(ctx context.Context, at, session, step, worker string) error {
	query := url.Values{
		"session": {session}, "step": {step}, "worker": {worker}, "decided": {strconv.FormatInt(time.Now().UnixNano(), 10)},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answered %s", resp.Status)
	}
	return nil
}

// all returns a copy of the calls of each step.
func (p *provider) all() map[string][]modelCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	steps := make(map[string][]modelCall, len(p.calls))
	for step, calls := range p.calls {
		for _, c := range calls {
			steps[step] = append(steps[step], *c)
		}
	}
	return steps
}

// count returns how many calls there are that a condition holds for.
func (p *provider) count(is func(modelCall) bool) (n int) {
	for _, calls := range p.all() {
		for _, c := range calls {
			if is(c) {
				n++
			}
		}
	}
	return n
}
