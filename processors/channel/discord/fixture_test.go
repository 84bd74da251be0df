package discord

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
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const token = "MTk4.s3cret.token"

type call struct {
	Method, Path string
	Params       map[string]any
}

// vendor plays Discord: its REST API, which answers calls by answer, and its gateway, whose connections are played by gateway.
type vendor struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	calls   []call
	nonces  map[string]string // message IDs by nonce
	answer  func(n int, c call, w http.ResponseWriter) bool
	gateway func(n int, g *peer)
	opened  int
}

// peer is the gateway's end of a connection.
type peer struct {
	t    *testing.T
	conn *websocket.Conn
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{t: t, nonces: map[string]string{}}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/gateway" {
		v.open(w, r)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v9")
	interaction := strings.HasPrefix(path, "/interactions/")
	if !ok || r.Header.Get("Authorization") != "Bot "+token && !interaction || !strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (") {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"message":"401: Unauthorized","code":0}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	c := call{Method: r.Method, Path: path}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &c.Params); err != nil || r.Header.Get("Content-Type") != "application/json" {
			v.t.Errorf("body: %v", err)
		}
	}
	v.mu.Lock()
	v.calls = append(v.calls, c)
	n, answer := len(v.calls), v.answer
	v.mu.Unlock()
	if answer != nil && answer(n, c, w) {
		return
	}
	if interaction {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	v.create(w, c, n)
}

// create creates a message once for a nonce.
func (v *vendor) create(w http.ResponseWriter, c call, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	nonce, _ := c.Params["nonce"].(string)
	if len(nonce) > 25 || c.Params["enforce_nonce"] != true {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"message":"Invalid Form Body","code":50035}`)
		return
	}
	if v.nonces[nonce] == "" {
		v.nonces[nonce] = fmt.Sprint(9000 + n)
	}
	_, _ = io.WriteString(w, `{"id":"`+v.nonces[nonce]+`"}`)
}

func (v *vendor) got() []call {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]call(nil), v.calls...)
}

func (v *vendor) open(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "v=9&encoding=json" {
		v.t.Errorf("query: %s", r.URL.RawQuery)
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	v.mu.Lock()
	v.opened++
	n := v.opened
	v.mu.Unlock()
	v.gateway(n, &peer{t: v.t, conn: conn})
}

func (v *vendor) connections() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.opened
}

func (p *peer) send(op int, sequence int64, event, data string) {
	raw, _ := json.Marshal(frame{Op: op, Data: jsontext.Value(data), Sequence: sequence, Event: event})
	_ = p.conn.Write(context.Background(), websocket.MessageText, raw) // the test fails if it does not arrive
}

// next returns the next frame that is not a heartbeat, which it acknowledges, and an empty one when the connection is closed.
func (p *peer) next() frame {
	for {
		_, raw, err := p.conn.Read(context.Background())
		if err != nil {
			return frame{Op: -1}
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			p.t.Errorf("frame: %v", err)
		}
		if f.Op != opHeartbeat {
			return f
		}
		p.send(opHeartbeatAck, 0, "", "null")
	}
}

// begin says hello and returns what the bot opens the session with.
func (p *peer) begin() frame {
	p.send(opHello, 0, "", `{"heartbeat_interval":3600000}`)
	return p.next()
}

func (p *peer) ready(resumeURL string) {
	p.send(opDispatch, 1, "READY", `{"v":9,"user":{"id":"42","username":"bot","bot":true},"session_id":"session-1","resume_gateway_url":"`+resumeURL+`"}`)
}

func newAdapter(t *testing.T, v *vendor, with ...func(*Config)) (*Adapter, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	c := Config{Account: "main", Token: token, Logger: zap.New(core), Clock: quick{clock.System()}}
	if v != nil {
		c.BaseURL, c.GatewayURL = v.URL, "ws"+strings.TrimPrefix(v.URL, "http")+"/gateway"
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
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "700", MessageID: "800", User: "9", Group: true},
		Text: "**Berth N4** is free, @everyone", Format: text.Markdown, Key: "a-delivery-with-a-long-identity/0", Count: 1,
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
