package telegram

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
)

func message1(id int) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":5,%s,"chat":{"id":9,"type":"private"},"text":"m%d"}}`, id, fromAnn, id)
}

const pressed = `{"update_id":4,"callback_query":{"id":"q1","from":{"id":9},"message":{"message_id":6,"chat":{"id":9,"type":"private"}},"data":"approve:g-1"}}`

func post(t *testing.T, a *Adapter, to adapter.Receiver, withSecret, body string) int {
	t.Helper()
	h, err := a.Handler(to)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/telegram", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if withSecret != "" {
		r.Header.Set(secretHeader, withSecret)
	}
	return platformtest.Serve(h, r).Code
}

func TestWebhookNeedsASecret(t *testing.T) {
	a, _ := newAdapter(t, defaultBaseURL, func(c *Config) { c.Secret = "" })
	_, err := a.Handler(platformtest.NewInbox(0))
	require.ErrorContains(t, err, "Config.Secret")
}

func TestWebhookTakesOnlyUpdatesWithTheSecret(t *testing.T) {
	a, _ := newAdapter(t, defaultBaseURL)
	i := platformtest.NewInbox(0)
	require.Equal(t, 401, post(t, a, i, "", message1(1)))
	require.Equal(t, 401, post(t, a, i, hookSecret+"x", message1(1)))
	require.Equal(t, 400, post(t, a, i, hookSecret, `{"message":{}}`))
	require.Equal(t, 400, post(t, a, i, hookSecret, `[`))
	require.Equal(t, 413, post(t, a, i, hookSecret, strings.Repeat(" ", 1<<20)+message1(1)))
	require.Empty(t, i.All())
	require.Equal(t, 200, post(t, a, i, hookSecret, `{"update_id":5,"poll":{}}`), "other updates are not sent again")
	require.Empty(t, i.All())
	require.Equal(t, 200, post(t, a, i, hookSecret, message1(1)))
	require.Equal(t, 200, post(t, a, i, hookSecret, message1(1)), "a repeat has the same event, by which it is recognised")
	require.Len(t, i.All(), 2)
	require.Equal(t, i.All()[0], i.All()[1])
	h, err := a.Handler(i)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/telegram", nil)
	r.Header.Set(secretHeader, hookSecret)
	require.Equal(t, 405, platformtest.Serve(h, r).Code)
}

// Telegram would send an update that cannot be read again, before the ones after it.
func TestWebhookSkipsPoison(t *testing.T) {
	a, logs := newAdapter(t, defaultBaseURL)
	i := platformtest.NewInbox(0)
	require.Equal(t, 200, post(t, a, i, hookSecret, `{"update_id":7,"message":{"message_id":"m1"}}`))
	require.Empty(t, i.All())
	require.Equal(t, 1, logs.FilterMessageSnippet("it is skipped").FilterField(zap.Int64("update_id", 7)).Len())
}

func TestWebhookAsksForAnotherTryWhenNotHandled(t *testing.T) {
	a, logs := newAdapter(t, defaultBaseURL)
	i := platformtest.NewInbox(1)
	require.Equal(t, 503, post(t, a, i, hookSecret, message1(1)))
	require.Equal(t, 200, post(t, a, i, hookSecret, message1(1)))
	require.Len(t, i.All(), 1)
	platformtest.Reasons(t, logs, "m1") // the text is not logged
}

func TestPressedButtonIsAcknowledgedAfterItWasHandled(t *testing.T) {
	v := newVendor(t)
	v.Answers(200, nil, `{"ok":true,"result":true}`)
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(1)
	require.Equal(t, 503, post(t, a, i, hookSecret, pressed))
	require.Empty(t, v.Got())
	require.Equal(t, 200, post(t, a, i, hookSecret, pressed))
	require.Equal(t, []call{{Method: "answerCallbackQuery", Params: map[string]any{"callback_query_id": "q1"}}}, v.Got())
}

func TestPollingConfirmsOnlyHandledUpdates(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(2)
	v.add(1, message1(1))
	v.add(2, message1(2))
	platformtest.Start(t, a, i)
	<-i.Came
	<-i.Came
	v.add(3, message1(3))
	<-i.Came
	require.Equal(t, []string{"1", "2", "3"}, i.Events())
	require.Equal(t, []int64{0, 0, 0, 3}, v.polled()[:4], "the offset passes an update when the receiver took it")
}

func TestPollingSurvivesFailuresAndPoison(t *testing.T) {
	v := newVendor(t)
	v.polls = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 1:
			platformtest.Cut(w)
		case 2:
			platformtest.Answer(w, http.StatusTooManyRequests, `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":3}}`)
		case 3:
			platformtest.Answer(w, http.StatusConflict, `{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request"}`)
		case 4:
			_, _ = io.WriteString(w, `{"ok":true,"result":[{"message":{"message_id":1}}]}`) // without an ID
		case 5:
			_, _ = io.WriteString(w, `{"ok":true,"result":"`+strings.Repeat("x", 2<<20)+`"}`)
		default:
			return false
		}
		return true
	}
	v.add(1, `{"update_id":1,"message":{"message_id":5,"text":{"not":"a text"}}}`)
	v.add(2, message1(2))
	a, logs := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	<-i.Came
	require.Equal(t, []string{"2"}, i.Events())
	require.Equal(t, []any{"connection lost", "status 429", "status 409", "updates have no new IDs", "connection lost"}, platformtest.Reasons(t, logs))
}

func TestPollingStopsWhileARequestIsOpen(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	stop := platformtest.Start(t, a, platformtest.NewInbox(0))
	require.Eventually(t, func() bool { return len(v.polled()) == 1 }, platformtest.WaitFor, platformtest.Tick)
	stop()
}
