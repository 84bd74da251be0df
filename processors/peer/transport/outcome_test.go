package transport

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/topics"
)

func TestAnswerOfAReplyThatIsTooLargeSaysSo(t *testing.T) {
	tr := New(nil, Config{})
	short, err := peerwire.ReadAnswer(tr.Shorten(peerwire.Answer{Reply: replyTo("t"), Answered: true, Reached: true}.Body()))
	require.NoError(t, err)
	require.Equal(t, peerwire.Answer{
		Code: peerwire.CodeMalformed, Detail: "The reply does not fit into a record.", Answered: true, Reached: true,
	}, short)
	short, err = peerwire.ReadAnswer(tr.Shorten(peerwire.Answer{Code: peerwire.CodePeerRefused, Detail: strings.Repeat("x", 4096), Reached: true}.Body()))
	require.NoError(t, err)
	require.Equal(t, peerwire.Answer{Code: peerwire.CodePeerRefused, Reached: true}, short)
	require.Nil(t, tr.Shorten(topics.Raw("{")))
}

// readable checks that a receipt can carry what Exchange returns.
func readable(t testing.TB, o outcome) {
	t.Helper()
	response, _ := o.result()
	require.True(t, jsontext.Value(response).IsValid(jsontext.AllowDuplicateNames(true)), "%s", response)
	catalog, err := topics.For("pilot")
	require.NoError(t, err)
	raw, err := catalog.PeerReceipts.Codec().Marshal(topics.Receipt{DeliveryID: "d", Attempt: 1, Outcome: topics.OutcomeFailed, Response: response})
	require.NoError(t, err)
	in := catalog.PeerReceipts.Codec().Unmarshal(raw)
	require.NoError(t, in.Err)
	got, err := peerwire.ReadAnswer(in.Value.Response)
	require.NoError(t, err)
	require.Equal(t, o.answer.Code, got.Code)
	require.Equal(t, o.answer.Detail, got.Detail)
	require.Equal(t, o.answer.Reply == nil, got.Reply == nil)
}

func FuzzResponse(f *testing.F) {
	for _, body := range []string{
		string(replyTo("t")), `{"taskId":"t","taskId":"t","peerInstanceId":"","status":"success","x":[1e999,{"a":null}]}`,
		"{\"taskId\":\"t\",\"peerInstanceId\":\"\xff\",\"status\":\"error\",\"\xff\":\"\\ud800\"}", "", "null", `{"error":"\ud800"}`, "<html>",
		" {\"taskId\":\"t\",\"peerInstanceId\":\"\xff\",\"status\":\"error\"}\n ",
	} {
		f.Add(200, []byte(body), "t", "7")
		f.Add(503, []byte(body), "t", "Sat, 20 Jun 2026 08:01:00 GMT")
	}
	f.Fuzz(func(t *testing.T, status int, body []byte, task, retryAfter string) {
		o := replied(200, body, task)
		readable(t, o)
		if o.failure == nil {
			before, err := peerwire.ReadReply(body, task)
			require.NoError(t, err)
			after, err := peerwire.ReadReply(o.answer.Reply, task)
			require.NoError(t, err)
			require.Equal(t, before, after)
		}
		o = refused(&http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}}, body, time.Now())
		readable(t, o)
		require.NotNil(t, o.failure)
		require.False(t, o.failure.Final && o.failure.RetryAfter > 0)
	})
}
