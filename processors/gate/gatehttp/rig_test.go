package gatehttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 90 * time.Second

// both runs a test under each guarantee.
func both(t *testing.T, test func(t *testing.T, guarantee processors.Guarantee)) {
	for _, g := range testbroker.Guarantees(t, processors.AtLeastOnce, processors.ExactlyOnce) {
		t.Run(string(g), func(t *testing.T) { test(t, g) })
	}
}

// field is an agent's topics on a broker. Its gate groups run where a test starts them.
type field struct {
	t         *testing.T
	guarantee processors.Guarantee
	brokers   []string
	agent     string
	catalog   topics.Catalog
	to        *processors.KafkaPublisher
}

func newField(t *testing.T, g processors.Guarantee) *field {
	t.Helper()
	f := &field{t: t, guarantee: g, brokers: testbroker.Start(t), agent: testbroker.Agent()}
	var err error
	f.catalog, err = topics.For(f.agent, topics.WithGates())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), f.brokers, kafka.Config(), f.catalog, topics.WithPartitions(2)))
	f.to, err = processors.NewPublisher(f.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.to.Close()) })
	return f
}

// gates runs the gate group and that of grants until stop is called.
func (f *field) gates(rules ...approval.Rule) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i, build := range []func(string, gate.Config) (*goka.GroupGraph, error){gate.GrantsGraph, gate.Graph} {
		graph, err := build(f.agent, gate.Config{Policy: approval.Policy{Rules: rules}})
		require.NoError(f.t, err)
		p, err := processors.New(f.brokers, graph, processors.WithTopics(f.catalog), processors.WithTick(20*time.Millisecond),
			processors.WithGuarantee(f.guarantee), processors.WithInstance(fmt.Sprint(f.agent, i)),
			processors.WithStorage(processors.LevelDB(f.t.TempDir())))
		require.NoError(f.t, err)
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				f.t.Error(err)
			}
		})
		require.Eventually(f.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 10*time.Millisecond)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	f.t.Cleanup(stop)
	return stop
}

// publish writes a record of a session.
func publish[T any](f *field, topic topics.Topic[T], key string, value T) {
	f.t.Helper()
	out, err := processors.OutboundOf(topic, key, value, "")
	require.NoError(f.t, err)
	require.NoError(f.t, f.to.Publish(f.t.Context(), out))
}

var paying = topics.Raw(`{"to":"otto","cents":1200}`)

// ask requests a gate to pay.
func (f *field) ask(session, id string, change ...func(*topics.GateRequest)) {
	f.t.Helper()
	r := topics.GateRequest{
		GateID: id, SessionID: session, Kind: topics.GateTool, Tool: "pay", Args: paying, ArgsSHA256: topics.ArgsSHA256(paying),
		Origin: topics.GateOrigin{Agent: f.agent, Via: "test"},
	}
	for _, c := range change {
		c(&r)
	}
	publish(f, f.catalog.GateRequests, session, r)
}

// editable permits edits that keep the amount small.
func editable(r *topics.GateRequest) {
	r.Allowed = []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny, topics.VerdictEdit}
	r.ResponseSchema = topics.Raw(`{"properties":{"cents":{"maximum":5000}}}`)
}

// doorway is a door with its index, as one process has them.
type doorway struct {
	*field
	index *Index
	http  *httptest.Server
	seen  *audits
	clock *clock.Fake // of the door and its index
	stop  func()
}

func (f *field) door(c Config) *doorway {
	f.t.Helper()
	d := f.closedDoor(c)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.index.Run(ctx, f.brokers) }()
	d.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(f.t, <-ran)
		d.http.Close()
	})
	f.t.Cleanup(d.stop)
	select {
	case <-d.index.Ready():
	case <-time.After(waitLimit):
		require.FailNow(f.t, "the index is not ready")
	}
	return d
}

// closedDoor is a door whose index does not run.
func (f *field) closedDoor(c Config) *doorway {
	f.t.Helper()
	// The clock stands still unless a test moves it: a wait ends with what it waits for.
	d := &doorway{field: f, seen: &audits{}, clock: clock.NewFake(time.Now())}
	c.Audit, c.Clock, c.DecisionWait = d.seen.add, d.clock, maxWait
	var err error
	d.index, err = NewIndex(f.agent, c)
	require.NoError(f.t, err)
	h, err := New(d.index, f.to, c)
	require.NoError(f.t, err)
	d.http = httptest.NewServer(h)
	f.t.Cleanup(d.http.Close)
	return d
}

// audits are the events of a door as "action status subject".
type audits struct {
	mu   sync.Mutex
	list []string
}

func (a *audits) add(e auth.AuditEvent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, strings.TrimSpace(fmt.Sprintf("%s %d %s %s %s", e.Action, e.Status, e.Session, e.RequestID, e.Subject)))
}

func (a *audits) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// callers authenticates the user that the header Authorization names: "name rights sessions".
func callers(r *http.Request) (auth.Caller, error) {
	fields := strings.Fields(r.Header.Get("Authorization"))
	if len(fields) != 3 {
		return auth.Caller{}, errors.New("no credential")
	}
	rights, err := auth.ParseRights(strings.Split(fields[1], ",")...)
	if err != nil {
		return auth.Caller{}, err
	}
	sessions, err := auth.ParseSessions(fields[2])
	return auth.Caller{UserID: fields[0], Rights: rights, MayUse: sessions.For(fields[0])}, err
}

// got is an answer.
type got struct {
	status int
	body   string
	header http.Header
}

// as is who sends a request: the header Authorization.
type as string

func (d *doorway) do(method, path, body string, headers ...any) got {
	d.t.Helper()
	g, err := d.try(method, path, body, headers...)
	require.NoError(d.t, err)
	return g
}

// try may be called from any goroutine.
func (d *doorway) try(method, path, body string, headers ...any) (got, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, d.http.URL+path, strings.NewReader(body))
	if err != nil {
		return got{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		switch v := h.(type) {
		case as:
			r.Header.Set("Authorization", string(v))
		case string:
			name, value, _ := strings.Cut(v, ": ")
			r.Header.Set(name, value)
		}
	}
	resp, err := d.http.Client().Do(r)
	if err != nil {
		return got{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, string(text), resp.Header}, err
}

// decided is the body of the answer to a decision.
type decided struct {
	Error      string    `json:"error"`
	DecisionID string    `json:"decision_id"`
	Gate       gate.View `json:"gate"`
}

func (g got) decided(t *testing.T) (d decided) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(g.body), &d), g.body)
	return d
}

func (g got) view(t *testing.T) (v gate.View) {
	t.Helper()
	require.Equal(t, http.StatusOK, g.status, g.body)
	require.NoError(t, json.Unmarshal([]byte(g.body), &v), g.body)
	return v
}

// listed returns the IDs in a list, and the next page.
func (g got) listed(t *testing.T) (ids []string, next string) {
	t.Helper()
	require.Equal(t, http.StatusOK, g.status, g.body)
	var list struct {
		Gates []gate.View `json:"gates"`
		Next  string      `json:"next"`
	}
	require.NoError(t, json.Unmarshal([]byte(g.body), &list), g.body)
	for _, v := range list.Gates {
		ids = append(ids, v.GateID)
	}
	return ids, list.Next
}

// pending blocks until a session's gates are open.
func (d *doorway) pending(session string, want ...string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		d.index.mu.Lock()
		defer d.index.mu.Unlock()
		for _, id := range want {
			if k := d.index.table.byID[id]; k == nil || !k.open || k.session != session {
				return false
			}
		}
		return true
	}, waitLimit, 5*time.Millisecond)
}
