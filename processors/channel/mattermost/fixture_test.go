package mattermost

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token = "bot-s3cret-token"
)

// vendor plays a Mattermost server: it creates a post once for a pending_post_id, and its WebSockets are played by play after the bot
// has authenticated.
type vendor struct {
	platformtest.Vendor[map[string]any]
	t *testing.T

	play    func(n int, p *peer)
	mu      sync.Mutex
	queries []string
}

type peer struct {
	t    *testing.T
	conn *websocket.Conn
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{t: t}
	v.Listen(t, v)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v4/websocket" {
		v.socket(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		platformtest.Answer(w, http.StatusUnauthorized, `{"id":"api.context.session_expired.app_error","message":"s3cret","status_code":401}`)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v4/users/me":
		_, _ = io.WriteString(w, `{"id":"bot1","username":"turntable","is_bot":true}`)
	case "POST /api/v4/posts":
		p := platformtest.Body(v.t, r)
		if n, answered := v.Call(p, w); !answered {
			platformtest.Answer(w, http.StatusCreated, `{"id":"`+v.create(p, n)+`"}`)
		}
	default:
		platformtest.Answer(w, http.StatusNotFound, `{"id":"api.context.404.app_error","status_code":404}`)
	}
}

func (v *vendor) create(p map[string]any, n int) string {
	return v.Once(fmt.Sprint(p["pending_post_id"]), fmt.Sprintf("post%d", n))
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
	log, logs := platformtest.Logs()
	c := Config{
		Account: "main", BaseURL: base, Token: token, Username: "turntable", WebhookToken: "hook-s3cret-token",
		CallbackURL: "https://bridge.example/mattermost", CallbackSecret: "a-s3cret-of-16-bytes", Logger: log, Clock: platformtest.Quick(),
	}
	return platformtest.Open(t, New, c, with...), logs
}

func chunk(with ...func(*adapter.Chunk)) adapter.Chunk {
	c := adapter.Chunk{
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "chan1", Thread: "root1", MessageID: "m1", User: "ann1", Group: true},
		Text: "**Berth N4** is free", Format: text.Markdown, Key: "d-1/0", Count: 1,
	}
	return platformtest.With(c, with...)
}
