package delegationhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/kafka"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/topics"
)

const waitLimit = 90 * time.Second

// field is an agent's topics on a broker.
type field struct {
	t       *testing.T
	brokers []string
	agent   string
	catalog topics.Catalog
	to      *processors.KafkaPublisher
}

func newField(t *testing.T) *field {
	t.Helper()
	f := &field{t: t, brokers: testbroker.Start(t), agent: testbroker.Agent()}
	var err error
	f.catalog, err = topics.For(f.agent, topics.WithChannels())
	require.NoError(t, err)
	require.NoError(t, topics.EnsureCluster(t.Context(), f.brokers, kafka.Config(), f.catalog, topics.WithPartitions(2)))
	f.to, err = processors.NewPublisher(f.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.to.Close()) })
	return f
}

// began is when the delegations of tests begin.
var began = time.Now().UnixMilli()

// write writes a record of delegation-status.
func (f *field) write(session, id string, status topics.DelegationStatus, change ...func(*topics.Delegation)) {
	f.t.Helper()
	d := topics.Delegation{
		SessionID: session, CallbackID: id, Agent: f.agent, Target: "research", Status: status, Depth: 1, Channel: "slack",
		StartedMS: began, DeadlineMS: began + 600_000,
	}
	if status != topics.DelegationOpen {
		d.EndedMS = began + 1000
	}
	for _, c := range change {
		c(&d)
	}
	out, err := processors.OutboundOf(f.catalog.DelegationStatus, session, d, "")
	require.NoError(f.t, err)
	require.NoError(f.t, f.to.Publish(f.t.Context(), out))
}

func result(text string) func(*topics.Delegation) {
	return func(d *topics.Delegation) { d.Result = text }
}

// doorway is a door with its index, as one process has them.
type doorway struct {
	*field
	index *Index
	http  *httptest.Server
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
	d := &doorway{field: f}
	var err error
	d.index, err = NewIndex(f.agent, c)
	require.NoError(f.t, err)
	h, err := New(d.index, c)
	require.NoError(f.t, err)
	d.http = httptest.NewServer(h)
	f.t.Cleanup(d.http.Close)
	return d
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

// get sends a request of a caller, empty for none.
func (d *doorway) get(path, caller string) got {
	d.t.Helper()
	return d.do(http.MethodGet, path, caller)
}

func (d *doorway) do(method, path, caller string) got {
	d.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, d.http.URL+path, nil)
	require.NoError(d.t, err)
	if caller != "" {
		r.Header.Set("Authorization", caller)
	}
	resp, err := d.http.Client().Do(r)
	require.NoError(d.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(d.t, err)
	return got{resp.StatusCode, string(text), resp.Header}
}

func (g got) delegation(t *testing.T) (d Delegation) {
	t.Helper()
	require.Equal(t, http.StatusOK, g.status, g.body)
	require.NoError(t, json.Unmarshal([]byte(g.body), &d), g.body)
	return d
}

func (g got) listed(t *testing.T) (ids []string) {
	t.Helper()
	require.Equal(t, http.StatusOK, g.status, g.body)
	var list struct {
		Delegations []Delegation `json:"delegations"`
	}
	require.NoError(t, json.Unmarshal([]byte(g.body), &list), g.body)
	for _, d := range list.Delegations {
		ids = append(ids, d.CallbackID+" "+string(d.Status))
		require.Nil(t, d.Result)
	}
	return ids
}
