package matrix

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token   = "syt_s3cret_token"
	hsToken = "hs-s3cret-token-01"
	bot     = "@bot:example.org"
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)

// vendor plays a homeserver: it takes a message once for a transaction, unless answer answers, and answers syncs by syncs, or, when
// that has no answer, when the request ends.
type vendor struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	puts    []put
	events  map[string]string // by transaction
	answer  func(n int, p put, w http.ResponseWriter) bool
	syncs   func(n int, w http.ResponseWriter) bool
	since   []string
	members map[string]string
	lookups int
}

type put struct {
	Path string
	Body map[string]any
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{t: t, events: map[string]string{}, members: map[string]string{}}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/_matrix/client/v3")
	if !ok || r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"errcode":"M_UNKNOWN_TOKEN","error":"s3cret","soft_logout":false}`)
		return
	}
	switch {
	case r.Method == http.MethodPut && strings.Contains(path, "/send/m.room.message/"):
		v.put(w, r, path)
	case r.Method == http.MethodGet && path == "/sync":
		v.sync(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/joined_members"):
		v.mu.Lock()
		defer v.mu.Unlock()
		v.lookups++
		if m := v.members[strings.Split(path, "/")[2]]; m != "" {
			_, _ = io.WriteString(w, m)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"errcode":"M_FORBIDDEN"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"errcode":"M_UNRECOGNIZED"}`)
	}
}

func (v *vendor) put(w http.ResponseWriter, r *http.Request, path string) {
	body, _ := io.ReadAll(r.Body)
	p := put{Path: path}
	if err := json.Unmarshal(body, &p.Body); err != nil || r.Header.Get("Content-Type") != "application/json" {
		v.t.Errorf("body: %v", err)
	}
	v.mu.Lock()
	v.puts = append(v.puts, p)
	n, answer := len(v.puts), v.answer
	v.mu.Unlock()
	if answer == nil || !answer(n, p, w) {
		_, _ = io.WriteString(w, `{"event_id":"`+v.take(p, n)+`"}`)
	}
}

func (v *vendor) take(p put, n int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.events[p.Path] == "" {
		v.events[p.Path] = fmt.Sprintf("$event%d", n)
	}
	return v.events[p.Path]
}

func (v *vendor) sync(w http.ResponseWriter, r *http.Request) {
	var f map[string]any
	if err := json.Unmarshal([]byte(r.URL.Query().Get("filter")), &f); err != nil {
		v.t.Errorf("filter: %v", err)
	}
	v.mu.Lock()
	v.since = append(v.since, r.URL.Query().Get("since")+"/"+r.URL.Query().Get("timeout"))
	n, syncs := len(v.since), v.syncs
	v.mu.Unlock()
	if syncs == nil || !syncs(n, w) {
		<-r.Context().Done()
	}
}

func (v *vendor) got() []put {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]put(nil), v.puts...)
}

func (v *vendor) polled() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.since...)
}

func newAdapter(t *testing.T, base string, with ...func(*Config)) (*Adapter, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	c := Config{
		Account: "main", BaseURL: base, AccessToken: token, UserID: bot, DisplayName: "Berth Bot", HomeserverToken: hsToken,
		Logger: zap.New(core), Clock: quick{clock.System()},
	}
	for _, w := range with {
		w(&c)
	}
	a, err := New(c)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a, logs
}

// quick is a clock whose waits end after a thousandth of their time.
type quick struct{ clock.Clock }

func (q quick) NewTicker(d time.Duration) clock.Ticker { return q.Clock.NewTicker(max(d/1000, 1)) }

// inbox is a receiver that fails as often as it is told to.
type inbox struct {
	mu    sync.Mutex
	fails int
	got   []adapter.Inbound
	came  chan struct{}
}

func newInbox(fails int) *inbox { return &inbox{fails: fails, came: make(chan struct{}, 1000)} }

func (i *inbox) Receive(_ context.Context, in adapter.Inbound) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fails > 0 {
		i.fails--
		return fmt.Errorf("brokers are away")
	}
	i.got = append(i.got, in)
	i.came <- struct{}{}
	return nil
}

func (i *inbox) all() []adapter.Inbound {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]adapter.Inbound(nil), i.got...)
}

func (i *inbox) events() (ids []string) {
	for _, in := range i.all() {
		ids = append(ids, in.Event)
	}
	return ids
}

func chunk(with ...func(*adapter.Chunk)) adapter.Chunk {
	c := adapter.Chunk{
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "!room/1:example.org", Thread: "$root", MessageID: "$asked", User: "@ann:example.org", Group: true},
		Text: "Berth N4 is free", Format: text.Markdown, Key: "d-1/0", Count: 2,
	}
	for _, w := range with {
		w(&c)
	}
	return c
}

func failure(t *testing.T, err error) adapter.Failure {
	t.Helper()
	var f *adapter.Failure
	require.ErrorAs(t, err, &f)
	require.NotContains(t, f.Error(), "s3cret")
	return *f
}

// start runs the adapter until the test ends.
func start(t *testing.T, a *Adapter, to adapter.Receiver) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, to) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// message is an event of a room, with more members of its content.
func message(id, more string) string {
	return `{"event_id":"$` + id + `","sender":"@ann:example.org","type":"m.room.message","origin_server_ts":1700000000000,"room_id":"!r1:example.org","content":{"msgtype":"m.text","body":"text of ` + id + `"` + more + `}}`
}

func batch(next string, rooms string) string {
	return `{"next_batch":"` + next + `","rooms":{"join":{` + rooms + `}}}`
}

func room(id string, events ...string) string {
	return `"` + id + `":{"timeline":{"events":[` + strings.Join(events, ",") + `],"limited":false}}`
}

func decode(raw string, into any) error { return platform.Decode([]byte(raw), into) }
