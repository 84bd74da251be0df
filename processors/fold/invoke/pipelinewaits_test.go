package invoke

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMessageDuringAPauseSaysWhichGateItWaitsFor(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	p := g.pipeline(withGates)
	s := serve(t, must(New(p, Config{Random: &counting{}})))
	waits := func() string {
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		resp := s.sendUntil(ctx, http.MethodPost, "/invoke", question, "Accept", forms[2])
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return resp.Header.Get(HeaderWaits)
	}
	require.Empty(t, waits())
	g.gated("t", true, asksOnce...)
	require.Eventually(t, func() bool { return p.hub.waits("s-1") != "" }, time.Minute, time.Millisecond)
	require.Equal(t, gateOf("t", 0), waits())
	require.Equal(t, http.StatusOK, s.invoke(answerBody("t1", `{}`, `{"approved":true}`)).status)
	require.Empty(t, waits())
}

// A malformed answer to an open approval is none, and no message either.
func TestMalformedAnswersToAnOpenApprovalAreRefused(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("t", true, asksOnce...)
	for _, output := range []string{`true`, `"yes"`, `{}`, `[]`, `1`, `null`, `{"approve":true}`, `{"approved":"yes"}`, `{"approved":null}`} {
		for _, call := range []string{"t1", "by its tool and arguments"} {
			a := s.invoke(answerBody(call, `{"eur":1}`, output))
			require.Equal(t, http.StatusUnprocessableEntity, a.status, "%s: %s", output, a.body)
			require.Contains(t, a.failure(t), "approved", output)
		}
	}
	require.Zero(t, g.messagesWritten())
	require.Empty(t, g.written())
	require.Equal(t, http.StatusOK, s.invoke(answerBody("t1", `{"eur":1}`, `{"approved":true}`)).status, "it is still open")
}

func TestAnswerOfAPipelineByToolAndArgumentsCanBeRepeated(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	g.gated("t", true, asksOnce...)
	answer := answerBody("another call", `{"eur":1}`, `{"approved":true}`)
	first := s.invoke(answer)
	require.Equal(t, http.StatusOK, first.status, first.body)
	for range 2 {
		again := s.invoke(answer)
		require.Equal(t, http.StatusOK, again.status, again.body)
		require.Equal(t, string(at(t, first.body, "data")), string(at(t, again.body, "data")))
	}
	require.Equal(t, http.StatusConflict, s.invoke(answerBody("another call", `{"eur":1}`, `{"approved":false}`)).status)
	require.Len(t, g.written(), 1, "one decision")
	require.Zero(t, g.messagesWritten())
}
