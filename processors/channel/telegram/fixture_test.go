package telegram

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token      = "4242:AAE-s3cret_token"
	hookSecret = "webhook_s3cret_0001"
)

// vendor plays Telegram's Bot API. It answers getUpdates with the updates from the offset, which it waits for.
type vendor struct {
	platformtest.Vendor[call]
	t *testing.T

	mu      sync.Mutex
	updates map[int64]string
	added   chan struct{} // closed and replaced when updates are added
	offsets []int64
	polls   func(n int, w http.ResponseWriter) bool // answers a poll itself if it returns true
}

type call struct {
	Method string
	Params map[string]any
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{t: t, updates: map[int64]string{}, added: make(chan struct{})}
	v.Listen(t, v)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+token+"/")
	if !ok || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		platformtest.Answer(w, http.StatusNotFound, `{"ok":false,"error_code":404,"description":"Not Found"}`)
		return
	}
	c := call{Method: method, Params: platformtest.Body(v.t, r)}
	if method == "getUpdates" {
		v.poll(w, r, c)
	} else if n, answered := v.Call(c, w); !answered {
		_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d,"date":1,"chat":{"id":7,"type":"private"}}}`, 100+n)
	}
}

func (v *vendor) poll(w http.ResponseWriter, r *http.Request, c call) {
	offset, _ := c.Params["offset"].(float64)
	v.mu.Lock()
	v.offsets = append(v.offsets, int64(offset))
	n, polls := len(v.offsets), v.polls
	v.mu.Unlock()
	if polls != nil && polls(n, w) {
		return
	}
	for {
		v.mu.Lock()
		var found []string
		for id := int64(1); id <= 20; id++ {
			if u, ok := v.updates[id]; ok && id >= int64(offset) {
				found = append(found, u)
			}
		}
		added := v.added
		v.mu.Unlock()
		if len(found) > 0 {
			_, _ = io.WriteString(w, `{"ok":true,"result":[`+strings.Join(found, ",")+`]}`)
			return
		}
		select {
		case <-added:
		case <-r.Context().Done():
			return
		}
	}
}

func (v *vendor) add(id int64, u string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.updates[id] = u
	close(v.added)
	v.added = make(chan struct{})
}

func (v *vendor) polled() []int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]int64(nil), v.offsets...)
}

func newAdapter(t *testing.T, base string, with ...func(*Config)) (*Adapter, *observer.ObservedLogs) {
	t.Helper()
	log, logs := platformtest.Logs()
	c := Config{Account: "main", Token: token, Username: "turntable_bot", Secret: hookSecret, BaseURL: base, Logger: log, Clock: platformtest.Quick()}
	return platformtest.Open(t, New, c, with...), logs
}

func chunk(with ...func(*adapter.Chunk)) adapter.Chunk {
	c := adapter.Chunk{
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "-1007", Thread: "31", MessageID: "5", User: "9", Group: true},
		Text: "<b>Berth N4</b> is free", Format: text.TelegramHTML, Key: "d-1/0", Count: 1,
	}
	return platformtest.With(c, with...)
}
