package invoke

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestAnswerIsConsumedOnce(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, paidEnd))
	d.invoke(body("s-1", hi))
	first := d.invoke(yes, "Accept", jsonl, "X-Subject", "ana")
	require.Equal(t, first.body, d.invoke(yes, "Accept", jsonl).body)
	stands := d.invoke(no)
	require.Equal(t, http.StatusConflict, stands.status)
	require.Equal(t, "the interaction is decided already: approved", textAt(t, stands.body, "status", "message"))
	require.Equal(t, "approved", textAt(t, stands.body, "status", "outcome", "status"))
	require.Equal(t, "ana", textAt(t, stands.body, "status", "outcome", "by"))
	require.Len(t, d.agent.asked, 1)
	require.Len(t, d.agent.payments(), 1)
}

func TestAnswerByToolAndArgumentsCanBeRepeated(t *testing.T) {
	d := newDesk(t, newTeller(t, paying, paidEnd))
	d.invoke(body("s-1", hi))
	named := answerBody("t9", `{"to":"x","eur":1}`, `{"approved":true}`)
	first := d.invoke(named, "Accept", jsonl)
	require.Equal(t, http.StatusOK, first.status, first.body)
	again := d.invoke(named, "Accept", jsonl)
	require.Equal(t, http.StatusOK, again.status, again.body)
	require.Equal(t, first.body, again.body)
	denial := answerBody("t9", `{"to":"x","eur":1}`, `{"approved":false}`)
	require.Equal(t, "approved", textAt(t, d.invoke(denial).body, "status", "outcome", "status"))
	require.Len(t, d.agent.payments(), 1)
}

func TestConcurrentAnswersDecideOnce(t *testing.T) {
	for range 20 {
		d := newDesk(t, newTeller(t, payingTwice, paidEnd))
		d.invoke(body("s-1", hi))
		approve := body("s-1", answerOf("t1", `{"approved":true}`)+","+answerOf("t2", `{"approved":true}`))
		deny := body("s-1", answerOf("t1", `{"approved":false}`)+","+answerOf("t2", `{"approved":false}`))
		var wait sync.WaitGroup
		answers := make([]got, 6)
		for i := range answers {
			wait.Go(func() {
				answers[i] = d.invoke([]string{approve, deny}[i%2], "Accept", jsonl)
			})
		}
		wait.Wait()
		require.Len(t, d.agent.asked, 1)
		approved := d.agent.asked[0].Decisions[0].Approved()
		require.Equal(t, approved, d.agent.asked[0].Decisions[1].Approved(), "both answers of one request")
		for i, a := range answers {
			if approved == (i%2 == 0) {
				require.Equal(t, http.StatusOK, a.status)
				require.Contains(t, a.body, "Bye.")
			} else {
				require.Equal(t, http.StatusConflict, a.status)
			}
		}
		if !approved {
			require.Empty(t, d.agent.payments())
		}
	}
}

// An answer is not consumed unless its continuation began.
func TestTurnStaysPausedIfTheAgentCannotContinue(t *testing.T) {
	agent := newTeller(t, payingTwice, paidEnd)
	agent.fails = &Error{Status: http.StatusServiceUnavailable, Code: "busy", Text: "the bank is closed"}
	d := newDesk(t, agent)
	d.invoke(body("s-1", hi))
	require.Equal(t, http.StatusOK, d.invoke(yes).status)
	deny2 := body("s-1", answerOf("t2", `{"approved":false}`))
	require.Equal(t, http.StatusServiceUnavailable, d.invoke(deny2).status)
	require.Equal(t, "paused", textAt(t, d.invoke(yes).body, "data", "outputs", "stop_reason"))
	again := d.invoke(body("s-1", answerOf("t2", `{"approved":true}`)))
	require.Equal(t, http.StatusOK, again.status, "the other way round")
	require.Len(t, agent.payments(), 2)
}

func TestClientThatDisconnectsDoesNotStopTheContinuedTurn(t *testing.T) {
	agent := newTeller(t, paying, paidEnd)
	agent.held, agent.entered = make(chan struct{}), make(chan struct{}, 1)
	d := newDesk(t, agent)
	turn := d.invoke(body("s-1", hi)).header.Get(HeaderTurn)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.http.URL+"/invoke", strings.NewReader(yes))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	sent := make(chan error, 1)
	go func() {
		resp, err := d.http.Client().Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		sent <- err
	}()
	<-agent.entered
	require.Equal(t, http.StatusConflict, d.invoke(no).status, "decided, although Continue has not returned")
	cancel()
	require.Error(t, <-sent)
	close(agent.held)
	batch := d.invoke(body("s-1", ""), HeaderLastEvent, turn+".1.0")
	require.Contains(t, batch.body, "Bye.")
	require.Len(t, agent.payments(), 1)
}

// A client that answers as soon as it has read the interaction does not have to wait for the end of the stream.
func TestAnswerBeforeThePauseIsHeld(t *testing.T) {
	agent, tell := newLive(), newTeller(t, paidEnd)
	b := newBuffered(t, liveTeller{tell, agent})
	events := scripted(t, paying).events
	first, err := b.Invoke(t.Context(), Request{SessionID: "s-1", Trace: Trace{TraceID: "t", SpanID: "1"}})
	require.NoError(t, err)
	for _, e := range events[:3] {
		agent.items <- Item{Event: e}
		_, err := first.Next(t.Context())
		require.NoError(t, err)
	}
	waits := &signalling{Context: t.Context(), waited: make(chan struct{})}
	answered := make(chan error, 1)
	go func() {
		s, err := b.Invoke(waits, Request{SessionID: "s-1", Data: member(topics.Raw(yes), "data")})
		if err == nil {
			err = s.Close()
		}
		answered <- err
	}()
	select {
	case <-waits.waited:
	case err := <-answered:
		require.NoError(t, err)
	}
	require.Empty(t, tell.payments())
	agent.items <- Item{Event: events[3]}
	close(agent.items)
	require.NoError(t, <-answered)
	require.Len(t, tell.payments(), 1)
}

// signalling is a context that closes waited when someone waits for its end.
type signalling struct {
	context.Context
	waited chan struct{}
	once   sync.Once
}

func (s *signalling) Done() <-chan struct{} {
	s.once.Do(func() { close(s.waited) })
	return s.Context.Done()
}
