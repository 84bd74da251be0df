package webhook_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/processors/channel/webhook"
	"github.com/turntable-streams/turntable/topics"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func secret(b string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(b, 32)))
}

// signature is written from the specification, not with the library.
func signature(t *testing.T, secret, id string, at int64, body string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%d.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func config(url string) webhook.Config {
	return webhook.Config{Account: "main", URL: url, Secrets: []string{secret("a"), secret("b")}, Clock: clock.NewFake(start)}
}

func open(t *testing.T, c webhook.Config) *webhook.Adapter {
	return platformtest.Open(t, webhook.New, c)
}

// request is a signed request to the handler.
func request(t *testing.T, secret, id, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(start.Unix(), 10))
	r.Header.Set("webhook-signature", signature(t, secret, id, start.Unix(), body))
	return r
}

func serve(a *webhook.Adapter, to adapter.Receiver, r *http.Request) int {
	return platformtest.Serve(a.Handler(to), r).Code
}

func TestSignedMessageIsReceivedWithItsOrigin(t *testing.T) {
	a, to := open(t, config("https://x.example/hook?k=1")), &platformtest.Inbox{}
	body := `{"message":" /new hi","sender_id":"u1","sender_name":"Ann\nB","recipient":"room","thread_id":"t1","is_group":true,` +
		`"mentioned":true,"guild":"g","roles":["admin"],"message_id":"m1","metadata":{"turntable_origin":"x"},"unknown":1}`
	require.Equal(t, 204, serve(a, to, request(t, secret("a"), "msg_1", body)))
	require.Equal(t, []adapter.Inbound{{
		Event: "msg_1", Text: " /new hi", Mentioned: true, Guild: "g", Roles: []string{"admin"},
		Origin: topics.Origin{
			Channel: "webhook", Account: "main", Recipient: "room", Thread: "t1", MessageID: "m1", User: "u1", UserName: "Ann B",
			Group: true, Adapter: topics.Raw(`{"turntable_origin":"x"}`),
		},
	}}, to.Tried)
}

func TestEverySecretVerifiesSoThatSecretsCanBeReplaced(t *testing.T) {
	a := open(t, config("https://x.example"))
	for s, want := range map[string]int{"a": 204, "b": 204, "c": 401} {
		require.Equal(t, want, serve(a, &platformtest.Inbox{}, request(t, secret(s), "1", `{"message":"x","room":"r"}`)), s)
	}
	r := request(t, secret("c"), "1", `{"message":"x","room":"r"}`)
	r.Header.Set("webhook-signature", r.Header.Get("webhook-signature")+" v2,x "+signature(t, secret("b"), "1", start.Unix(), `{"message":"x","room":"r"}`))
	require.Equal(t, 204, serve(a, &platformtest.Inbox{}, r), "one of several signatures")
}

func TestForgedAndOldRequestsAreRefused(t *testing.T) {
	const body = `{"message":"x","sender_id":"u"}`
	for name, change := range map[string]func(*http.Request){
		"no signature": func(r *http.Request) { r.Header.Del("webhook-signature") },
		"no id":        func(r *http.Request) { r.Header.Del("webhook-id") },
		"no timestamp": func(r *http.Request) { r.Header.Del("webhook-timestamp") },
		"another id":   func(r *http.Request) { r.Header.Set("webhook-id", "2") },
		"two ids":      func(r *http.Request) { r.Header.Add("webhook-id", "2") },
		"another body": func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"message":"y","sender_id":"u"}`)) },
		"newer stamp":  func(r *http.Request) { r.Header.Set("webhook-timestamp", strconv.FormatInt(start.Unix()+1, 10)) },
		"no number":    func(r *http.Request) { r.Header.Set("webhook-timestamp", "now") },
		"version":      func(r *http.Request) { r.Header.Set("webhook-signature", "v2"+r.Header.Get("webhook-signature")[2:]) },
		"too many":     func(r *http.Request) { r.Header.Set("webhook-signature", strings.Repeat("v1,x ", 1000)) },
	} {
		to := &platformtest.Inbox{}
		r := request(t, secret("a"), "1", body)
		change(r)
		require.Equal(t, 401, serve(open(t, config("https://x.example")), to, r), name)
		require.Empty(t, to.Tried, name)
	}
}

func TestReplayOutsideTheWindowIsRefusedAndInsideItIsTheSameEvent(t *testing.T) {
	for skew, want := range map[time.Duration]int{
		5 * time.Minute: 204, -5 * time.Minute: 204, 5*time.Minute + time.Second: 401, -5*time.Minute - time.Second: 401,
	} {
		c, to := config("https://x.example"), &platformtest.Inbox{}
		c.Clock = clock.NewFake(start.Add(skew))
		a := open(t, c)
		for range 2 {
			require.Equal(t, want, serve(a, to, request(t, secret("a"), "1", `{"message":"x","sender_id":"u"}`)), skew)
		}
		if want == 204 {
			require.Equal(t, to.Tried[0].Event, to.Tried[1].Event)
		}
	}
}

func TestBodiesThatAreNoMessageAreRefused(t *testing.T) {
	large := strings.Repeat("x", 8<<10)
	for _, body := range []string{
		"", "null", "[]", `{}`, `{"message":"x"}`, `{"sender_id":"u"}`, `{"message":" ","sender_id":"u"}`,
		`{"message":"x","sender_id":"u","message":"y"}`, `{"message":1,"sender_id":"u"}`, `{"message":"x","sender_id":"u"} {}`,
		`{"Message":"x","sender_id":"u"}`, `{"message":"x","sender_id":"u","metadata":[]}`, "{\"message\":\"\xff\",\"sender_id\":\"u\"}",
		`{"message":"x","sender_id":"u","metadata":{"k":"` + large + `"}}`, `{"message":"x","sender_id":"` + large + `"}`,
		`{"sender_id":"u","decision":{"gate_id":"g"}}`, `{"sender_id":"u","decision":{"approve":true}}`,
		`{"sender_id":"u","message":"x","decision":{"gate_id":"g","approve":true}}`,
	} {
		to := &platformtest.Inbox{}
		require.Equal(t, 400, serve(open(t, config("https://x.example")), to, request(t, secret("a"), "1", body)), body)
		require.Empty(t, to.Tried)
	}
}

func TestHugeBodyAndOtherMethodsAreRefused(t *testing.T) {
	c := config("https://x.example")
	c.MaxBody = 100
	a := open(t, c)
	require.Equal(t, 413, serve(a, &platformtest.Inbox{}, request(t, secret("a"), "1", `{"message":"`+strings.Repeat("x", 100)+`"}`)))
	r := request(t, secret("a"), "1", `{}`)
	r.Method = http.MethodGet
	require.Equal(t, 405, serve(a, &platformtest.Inbox{}, r))
	r = request(t, secret("a"), "1", `{}`)
	r.Header.Set("Content-Type", "text/plain")
	require.Equal(t, 415, serve(a, &platformtest.Inbox{}, r))
}

func TestFailedReceiverMakesTheSenderTryAgain(t *testing.T) {
	to := &platformtest.Inbox{Err: errors.New("secret broker")}
	w := httptest.NewRecorder()
	open(t, config("https://x.example")).Handler(to).ServeHTTP(w, request(t, secret("a"), "1", `{"message":"x","sender_id":"u"}`))
	require.Equal(t, 503, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.NotContains(t, w.Body.String(), "secret")
}

func TestDecisionIsReceived(t *testing.T) {
	for _, approve := range []bool{true, false} {
		to := &platformtest.Inbox{}
		body := fmt.Sprintf(`{"sender_id":"u","room":"r","decision":{"gate_id":"gate-1","approve":%t}}`, approve)
		require.Equal(t, 204, serve(open(t, config("https://x.example")), to, request(t, secret("a"), "1", body)))
		require.Equal(t, &adapter.Decision{GateID: "gate-1", Approve: approve}, to.Tried[0].Decision)
		require.Empty(t, to.Tried[0].Text)
		require.Equal(t, "r", to.Tried[0].Origin.Recipient)
	}
}

// receiver is a loopback receiver that verifies signatures.
type receiver struct {
	bodies []string
	heads  []http.Header
	answer func(w http.ResponseWriter, n int)
}

func (s *receiver) start(t *testing.T, secrets ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		var want []string
		for _, secret := range secrets {
			want = append(want, signature(t, secret, r.Header.Get("webhook-id"), at, string(body)))
		}
		if r.Method != http.MethodPost || r.Header.Get("webhook-signature") != strings.Join(want, " ") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.bodies, s.heads = append(s.bodies, string(body)), append(s.heads, r.Header)
		if s.answer != nil {
			s.answer(w, len(s.bodies))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook"
}

func chunk() adapter.Chunk {
	return adapter.Chunk{
		To: topics.Origin{
			Channel: "webhook", Account: "main", Recipient: "room", Thread: "t1", MessageID: "m1", User: "u1", Group: true,
			Adapter: topics.Raw(`{"url":"https://evil.example"}`),
		},
		Text: "a <b> \u2028", Format: text.Markdown, Key: "delivery/7/1", Index: 1, Count: 2,
		Ask: &adapter.Ask{GateID: "g", Tool: "rm", ExpiresMS: 9}, SenderName: "agent",
	}
}

func TestSentMessageIsSignedAndComplete(t *testing.T) {
	s := &receiver{answer: func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"id":"remote-1"}`) }}
	a := open(t, config(s.start(t, secret("a"), secret("b"))))
	for range 2 {
		sent, err := a.Send(t.Context(), chunk())
		require.NoError(t, err)
		require.Equal(t, adapter.Sent{ID: "remote-1"}, sent)
	}
	require.JSONEq(t, `{"type":"message","delivery_id":"delivery/7","key":"delivery/7/1","account":"main","recipient":"room",
		"thread_id":"t1","reply_to":"m1","user_id":"u1","is_group":true,"text":"a <b> \u2028","format":"markdown",
		"chunk":{"index":1,"count":2},"ask":{"gate_id":"g","tool":"rm","expires_ms":9},"sender_name":"agent",
		"metadata":{"url":"https://evil.example"}}`, s.bodies[0])
	require.Equal(t, s.bodies[0], s.bodies[1], "an attempt is repeated byte by byte")
	for _, h := range s.heads {
		require.Equal(t, "delivery/7/1", h.Get("Idempotency-Key"))
		require.Equal(t, "delivery/7/1", h.Get("webhook-id"))
		require.Equal(t, strconv.FormatInt(start.Unix(), 10), h.Get("webhook-timestamp"))
	}
}

func TestKeysThatAreNoHeadersAreHashed(t *testing.T) {
	s := &receiver{}
	a := open(t, config(s.start(t, secret("a"), secret("b"))))
	seen := map[string]bool{}
	for _, key := range []string{"", "a b", "a\r\nX: y", "é/0", strings.Repeat("x", 300)} {
		c := chunk()
		c.Key = key
		_, err := a.Send(t.Context(), c)
		require.NoError(t, err)
		id := s.heads[len(s.heads)-1].Get("webhook-id")
		require.Len(t, id, 64)
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestRefusalsAreMapped(t *testing.T) {
	for status, want := range map[int]adapter.Failure{
		400: {Reason: "status 400", Status: 400, Final: true}, 410: {Reason: "status 410", Status: 410, Final: true},
		307: {Reason: "status 307", Status: 307, Final: true}, 401: {Reason: "status 401", Status: 401},
		429: {Reason: "status 429", Status: 429, RetryAfter: 7 * time.Second},
		503: {Reason: "status 503", Status: 503, RetryAfter: 7 * time.Second},
	} {
		s := &receiver{answer: func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "/other")
			w.WriteHeader(status)
		}}
		_, err := open(t, config(s.start(t, secret("a"), secret("b")))).Send(t.Context(), chunk())
		require.Equal(t, &want, err, status)
		require.Len(t, s.bodies, 1, "redirects are not followed")
	}
	s := &receiver{}
	_, err := open(t, config(s.start(t, secret("c")))).Send(t.Context(), chunk())
	require.Equal(t, &adapter.Failure{Reason: "status 401", Status: 401}, err, "the receiver has other secrets")
}

func TestConnectionThatIsCutBetweenChunksIsRetriedWithTheSameKey(t *testing.T) {
	s := &receiver{answer: func(w http.ResponseWriter, n int) {
		if n == 2 || n == 3 { // the client itself repeats a request with an Idempotency-Key once on a new connection
			platformtest.Cut(w)
		}
	}}
	a := open(t, config(s.start(t, secret("a"), secret("b"))))
	c := chunk()
	c.Key = "d/0"
	_, err := a.Send(t.Context(), c)
	require.NoError(t, err)
	c.Key = "d/1"
	_, err = a.Send(t.Context(), c)
	require.Equal(t, &adapter.Failure{Reason: "connection lost"}, err)
	_, err = a.Send(t.Context(), c)
	require.NoError(t, err)
	for _, h := range s.heads[1:] {
		require.Equal(t, "d/1", h.Get("Idempotency-Key"))
	}
}

// The same secrets may be used in both directions.
func TestReflectedMessageOfTheAgentIsRefused(t *testing.T) {
	s := &receiver{}
	a := open(t, config(s.start(t, secret("a"), secret("b"))))
	_, err := a.Send(t.Context(), chunk())
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(s.bodies[0]))
	r.Header = s.heads[0].Clone()
	to := &platformtest.Inbox{}
	require.Equal(t, 400, serve(a, to, r))
	require.Empty(t, to.Tried)
}

func TestSenderThatStallsDoesNotHoldUpOthers(t *testing.T) {
	a, to := open(t, config("https://x.example")), &platformtest.Inbox{}
	server := httptest.NewServer(a.Handler(to))
	defer server.Close()
	slow, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprintf(slow, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
	require.NoError(t, err)
	require.Equal(t, 204, serve(a, to, request(t, secret("a"), "1", `{"message":"x","sender_id":"u"}`)))
	require.NoError(t, slow.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(slow), nil)
	require.NoError(t, err)
	require.Equal(t, 400, response.StatusCode)
	require.NoError(t, slow.Close())
}

func TestConfigurationIsValidated(t *testing.T) {
	for name, err := range platformtest.Refused(t, webhook.New, config("https://x.example"), map[string]func(*webhook.Config){
		"no account":    func(c *webhook.Config) { c.Account = " " },
		"no URL":        func(c *webhook.Config) { c.URL = "" },
		"plain HTTP":    func(c *webhook.Config) { c.URL = "http://x.example" },
		"user in URL":   func(c *webhook.Config) { c.URL = "https://u:s3cret@x.example" },
		"fragment":      func(c *webhook.Config) { c.URL = "https://x.example#a" },
		"no secrets":    func(c *webhook.Config) { c.Secrets = nil },
		"empty secret":  func(c *webhook.Config) { c.Secrets = []string{"whsec_"} },
		"short secret":  func(c *webhook.Config) { c.Secrets = []string{"whsec_aHVudGVyMg=="} },
		"other secret":  func(c *webhook.Config) { c.SendSecrets = []string{"s3cret!"} },
		"negative time": func(c *webhook.Config) { c.Timeout = -1 },
	}) {
		require.ErrorIs(t, err, webhook.ErrConfig, name)
	}
}

func TestTraits(t *testing.T) {
	a := open(t, config("https://x.example"))
	require.Equal(t, "webhook", a.Channel())
	require.Equal(t, adapter.Traits{
		Format: text.Markdown, Limit: text.Limit{Max: 65535, Unit: text.Bytes}, Threads: true, Buttons: true,
	}, a.Traits())
}
