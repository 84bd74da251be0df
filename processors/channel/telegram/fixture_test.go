package telegram

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
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

const (
	token      = "4242:AAE-s3cret_token"
	hookSecret = "webhook_s3cret_0001"
)

// vendor plays Telegram's Bot API. It answers sendMessage and answerCallbackQuery by answer, and getUpdates with the updates from
// the offset, which it waits for.
type vendor struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	calls   []call
	answer  func(n int, c call, w http.ResponseWriter)
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
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+token+"/")
	if !ok || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":404,"description":"Not Found"}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	c := call{Method: method}
	if err := json.Unmarshal(body, &c.Params); err != nil {
		v.t.Errorf("body: %v", err)
	}
	if method == "getUpdates" {
		v.poll(w, r, c)
		return
	}
	v.mu.Lock()
	v.calls = append(v.calls, c)
	n, answer := len(v.calls), v.answer
	v.mu.Unlock()
	if answer != nil {
		answer(n, c, w)
		return
	}
	_, _ = fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d,"date":1,"chat":{"id":7,"type":"private"}}}`, 100+n)
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

func (v *vendor) got() []call {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]call(nil), v.calls...)
}

func (v *vendor) polled() []int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]int64(nil), v.offsets...)
}

func newAdapter(t *testing.T, base string, with ...func(*Config)) (*Adapter, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	c := Config{Account: "main", Token: token, Username: "turntable_bot", Secret: hookSecret, BaseURL: base, Logger: zap.New(core), Clock: quick{clock.System()}}
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

func newInbox(fails int) *inbox { return &inbox{fails: fails, came: make(chan struct{}, 100)} }

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

func chunk(with ...func(*adapter.Chunk)) adapter.Chunk {
	c := adapter.Chunk{
		To:   topics.Origin{Channel: Channel, Account: "main", Recipient: "-1007", Thread: "31", MessageID: "5", User: "9", Group: true},
		Text: "<b>Berth N4</b> is free", Format: text.TelegramHTML, Key: "d-1/0", Count: 1,
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

const (
	waitFor = 30 * time.Second
	tick    = time.Millisecond
)
