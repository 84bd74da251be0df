package mattermost

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

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token   = "bot-s3cret-token"
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)

// vendor plays a Mattermost server: it creates a post once for a pending_post_id, unless answer answers, and its WebSockets are played
// by play after the bot has authenticated.
type vendor struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	posts   []map[string]any
	created map[string]string
	answer  func(n int, p map[string]any, w http.ResponseWriter) bool
	play    func(n int, p *peer)
	queries []string
}

type peer struct {
	t    *testing.T
	conn *websocket.Conn
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{t: t, created: map[string]string{}}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v4/websocket" {
		v.socket(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"id":"api.context.session_expired.app_error","message":"s3cret","status_code":401}`)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v4/users/me":
		_, _ = io.WriteString(w, `{"id":"bot1","username":"turntable","is_bot":true}`)
	case "POST /api/v4/posts":
		body, _ := io.ReadAll(r.Body)
		var p map[string]any
		if err := json.Unmarshal(body, &p); err != nil || r.Header.Get("Content-Type") != "application/json" {
			v.t.Errorf("body: %v", err)
		}
		v.mu.Lock()
		v.posts = append(v.posts, p)
		n, answer := len(v.posts), v.answer
		v.mu.Unlock()
		if answer == nil || !answer(n, p, w) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"`+v.create(p, n)+`"}`)
		}
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"id":"api.context.404.app_error","status_code":404}`)
	}
}

func (v *vendor) create(p map[string]any, n int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	pending, _ := p["pending_post_id"].(string)
	if v.created[pending] == "" {
		v.created[pending] = fmt.Sprintf("post%d", n)
	}
	return v.created[pending]
}

func (v *vendor) got() []map[string]any {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]map[string]any(nil), v.posts...)
}

func (v *vendor) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	v.mu.Lock()
	v.queries = append(v.queries, r.URL.RawQuery)
	n := len(v.queries)
	v.mu.Unlock()
	_, raw, err := conn.Read(context.Background())
	if err != nil {
		return
	}
	var c struct {
		Seq    int               `json:"seq"`
		Action string            `json:"action"`
		Data   map[string]string `json:"data"`
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Action != "authentication_challenge" || c.Data["token"] != token {
		v.t.Errorf("authentication: %v", err)
	}
	v.play(n, &peer{t: v.t, conn: conn})
}

func (v *vendor) connections() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.queries...)
}

func (p *peer) send(raw string) {
	_ = p.conn.Write(context.Background(), websocket.MessageText, []byte(raw)) // the test fails if it does not arrive
}

func (p *peer) hello(connection string) {
	p.send(`{"status":"OK","seq_reply":1}`)
	p.send(`{"event":"hello","data":{"connection_id":"` + connection + `","server_version":"10.0"},"seq":0}`)
}

// wait keeps a connection until the bot closes it.
func (p *peer) wait() {
	for {
		if _, _, err := p.conn.Read(context.Background()); err != nil {
			return
		}
	}
}

// message sends the event of a post.
func (p *peer) message(seq int, id string, change ...string) {
	post := map[string]any{"id": id, "create_at": 1_700_000_000_000, "user_id": "ann1", "channel_id": "chan1", "message": "text of " + id, "type": "", "props": map[string]any{}}
	data := map[string]any{"channel_type": "O", "sender_name": "@ann", "team_id": "team1"}
	for i := 0; i+1 < len(change); i += 2 {
		switch of, name, _ := strings.Cut(change[i], "."); of {
		case "post":
			post[name] = change[i+1]
		case "prop":
			post["props"] = map[string]any{name: change[i+1]}
		default:
			data[name] = change[i+1]
		}
	}
	inner, _ := json.Marshal(post)
	data["post"] = string(inner)
	raw, _ := json.Marshal(map[string]any{"event": "posted", "data": data, "seq": seq})
	p.send(string(raw))
}

func newAdapter(t *testing.T, base string, with ...func(*Config)) (*Adapter, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	c := Config{
		Account: "main", BaseURL: base, Token: token, Username: "turntable", WebhookToken: "hook-s3cret-token",
		CallbackURL: "https://bridge.example/mattermost", CallbackSecret: "a-s3cret-of-16-bytes", Logger: zap.New(core), Clock: quick{clock.System()},
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
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "chan1", Thread: "root1", MessageID: "m1", User: "ann1", Group: true},
		Text: "**Berth N4** is free", Format: text.Markdown, Key: "d-1/0", Count: 1,
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
