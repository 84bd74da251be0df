package matrix

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token   = "syt_s3cret_token"
	hsToken = "hs-s3cret-token-01"
	bot     = "@bot:example.org"
)

// vendor plays a homeserver: it takes a message once for a transaction, and answers syncs by syncs, or, when that has no answer, when
// the request ends.
type vendor struct {
	platformtest.Vendor[put]
	t *testing.T

	syncs   func(n int, w http.ResponseWriter) bool
	mu      sync.Mutex
	since   []string
	members map[string]string
	lookups int
}

type put struct {
	Path string
	Body map[string]any
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{t: t, members: map[string]string{}}
	v.Listen(t, v)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/_matrix/client/v3")
	if !ok || r.Header.Get("Authorization") != "Bearer "+token {
		platformtest.Answer(w, http.StatusUnauthorized, `{"errcode":"M_UNKNOWN_TOKEN","error":"s3cret","soft_logout":false}`)
		return
	}
	switch {
	case r.Method == http.MethodPut && strings.Contains(path, "/send/m.room.message/"):
		p := put{Path: path, Body: platformtest.Body(v.t, r)}
		if n, answered := v.Call(p, w); !answered {
			_, _ = io.WriteString(w, `{"event_id":"`+v.take(p, n)+`"}`)
		}
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
		platformtest.Answer(w, http.StatusForbidden, `{"errcode":"M_FORBIDDEN"}`)
	default:
		platformtest.Answer(w, http.StatusNotFound, `{"errcode":"M_UNRECOGNIZED"}`)
	}
}

func (v *vendor) take(p put, n int) string { return v.Once(p.Path, fmt.Sprintf("$event%d", n)) }

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

func (v *vendor) polled() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.since...)
}

func newAdapter(t *testing.T, base string, with ...func(*Config)) (*Adapter, *observer.ObservedLogs) {
	t.Helper()
	log, logs := platformtest.Logs()
	c := Config{
		Account: "main", BaseURL: base, AccessToken: token, UserID: bot, DisplayName: "Berth Bot", HomeserverToken: hsToken,
		Logger: log, Clock: platformtest.Quick(),
	}
	return platformtest.Open(t, New, c, with...), logs
}

func chunk(with ...func(*adapter.Chunk)) adapter.Chunk {
	c := adapter.Chunk{
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "!room/1:example.org", Thread: "$root", MessageID: "$asked", User: "@ann:example.org", Group: true},
		Text: "Berth N4 is free", Format: text.Markdown, Key: "d-1/0", Count: 2,
	}
	return platformtest.With(c, with...)
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
