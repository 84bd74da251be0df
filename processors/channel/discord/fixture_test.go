package discord

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const token = "MTk4.s3cret.token"

type call struct {
	Method, Path string
	Params       map[string]any
}

// vendor plays Discord: its REST API, and its gateway, whose connections are played by gateway.
type vendor struct {
	platformtest.Vendor[call]
	t *testing.T

	gateway func(n int, g *peer)
	opened  atomic.Int64
}

// peer is the gateway's end of a connection.
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
	if r.URL.Path == "/gateway" {
		v.open(w, r)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v9")
	interaction := strings.HasPrefix(path, "/interactions/")
	if !ok || r.Header.Get("Authorization") != "Bot "+token && !interaction || !strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (") {
		platformtest.Answer(w, http.StatusUnauthorized, `{"message":"401: Unauthorized","code":0}`)
		return
	}
	c := call{Method: r.Method, Path: path, Params: platformtest.Body(v.t, r)}
	n, answered := v.Call(c, w)
	switch nonce := v.created(c, n); {
	case answered:
	case interaction:
		w.WriteHeader(http.StatusNoContent)
	case nonce == "":
		platformtest.Answer(w, http.StatusBadRequest, `{"message":"Invalid Form Body","code":50035}`)
	default:
		_, _ = io.WriteString(w, `{"id":"`+nonce+`"}`)
	}
}

// created returns the ID of a message, which is created once for a nonce, and an empty one for a call that creates none.
func (v *vendor) created(c call, n int) string {
	nonce, _ := c.Params["nonce"].(string)
	if len(nonce) > 25 || c.Params["enforce_nonce"] != true {
		return ""
	}
	return v.Once(nonce, fmt.Sprint(9000+n))
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
	v.gateway(int(v.opened.Add(1)), &peer{t: v.t, conn: conn})
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
	log, logs := platformtest.Logs()
	c := Config{Account: "main", Token: token, Logger: log, Clock: platformtest.Quick()}
	if v != nil {
		c.BaseURL, c.GatewayURL = v.URL, "ws"+strings.TrimPrefix(v.URL, "http")+"/gateway"
	}
	return platformtest.Open(t, New, c, with...), logs
}

func chunk(with ...func(*adapter.Chunk)) adapter.Chunk {
	c := adapter.Chunk{
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "700", MessageID: "800", User: "9", Group: true},
		Text: "**Berth N4** is free, @everyone", Format: text.Markdown, Key: "a-delivery-with-a-long-identity/0", Count: 1,
	}
	return platformtest.With(c, with...)
}
