package channel_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// pager is the adapter of a platform that sends signed requests, and takes messages over REST.
type pager struct {
	account, base, key string // account is also the Name of its channel.AccountAdapter
	client             *http.Client
	receiving          sync.Mutex // keeps the order of events: a real adapter would have one for each conversation
}

func (p *pager) Close()        { p.client.CloseIdleConnections() }
func (*pager) Channel() string { return "pager" }
func (*pager) Traits() adapter.Traits {
	return adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: 80, Unit: text.Runes}}
}

// Handler returns the handler of the platform's requests.
func (p *pager) Handler(to adapter.Receiver) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil || !hmac.Equal([]byte(r.Header.Get("X-Signature")), []byte(p.sign(body))) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second) // the platform waits for 10 s
		defer cancel()
		w.WriteHeader(p.receive(ctx, body, to))
	})
}

func (p *pager) sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(p.key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// receive passes on an event and returns the status of the answer.
func (p *pager) receive(ctx context.Context, body []byte, to adapter.Receiver) int {
	var e struct{ ID, Room, User, Text string }
	err := json.Unmarshal(body, &e)
	in := adapter.Inbound{
		Event: e.ID, Text: e.Text, // the platform has authenticated the person: an empty Proof
		Origin: topics.Origin{Channel: p.Channel(), Account: p.account, Recipient: e.Room, User: e.User, MessageID: e.ID},
	}
	if err != nil || in.Event == "" || in.Origin.Check() != nil {
		return http.StatusBadRequest
	}
	p.receiving.Lock()
	defer p.receiving.Unlock()
	if to.Receive(ctx, in) != nil {
		return http.StatusServiceUnavailable // the platform sends the event again
	}
	return http.StatusNoContent
}

// Send posts a chunk to its room.
func (p *pager) Send(ctx context.Context, c adapter.Chunk) (adapter.Sent, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/rooms/"+url.PathEscape(c.To.Recipient), strings.NewReader(c.Text))
	if err != nil {
		return adapter.Sent{}, &adapter.Failure{Reason: "bad address", Final: true}
	}
	r.Header.Set("Idempotency-Key", c.Key)
	response, err := p.client.Do(r)
	if err != nil { // its text has the address
		return adapter.Sent{}, &adapter.Failure{Reason: "no response"}
	}
	defer response.Body.Close()
	s := response.StatusCode
	if s/100 == 2 {
		return adapter.Sent{ID: response.Header.Get("Message-ID")}, nil
	}
	after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	again := s/100 == 5 || s == http.StatusUnauthorized || s == http.StatusRequestTimeout || s == http.StatusTooManyRequests
	return adapter.Sent{}, &adapter.Failure{Reason: "status", Status: s, Final: !again, RetryAfter: time.Duration(after) * time.Second}
}

func Example_adapter() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // in place of the platform
		said, _ := io.ReadAll(r.Body)
		fmt.Println(r.URL.Path, r.Header.Get("Idempotency-Key"), string(said))
	}))
	defer server.Close()
	p := &pager{account: "main", base: server.URL, key: "secret", client: server.Client()}
	defer p.Close()
	// A channel.Bridge is the receiver of a program; this one answers at once.
	door := p.Handler(adapter.ReceiverFunc(func(ctx context.Context, in adapter.Inbound) error {
		_, err := p.Send(ctx, adapter.Chunk{To: in.Origin, Text: "You wrote: " + in.Text, Key: in.Event + "/0", Count: 1})
		return err
	}))
	body := `{"id": "e1", "room": "harbor", "user": "ana", "text": "Is the boat in?"}`
	for _, signature := range []string{p.sign([]byte(body)), "forged"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/pager", strings.NewReader(body))
		r.Header.Set("X-Signature", signature)
		door.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// /rooms/harbor e1/0 You wrote: Is the boat in?
	// 204
	// 401
}
