package capabilities

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// Chunk 3 of 5 fails twice, and the sink is stopped in between: another process continues with chunk 3.
func TestAnswerContinuesAtTheChunkThatFailedInAnotherProcess(t *testing.T) {
	t.Parallel()
	f := newChannelRig(t)
	failed := make(chan int, 10)
	f.main.answer = func(w http.ResponseWriter, p post, _ int) bool {
		n := len(f.main.requests("three"))
		if p.text[:5] != "three" || n > 2 {
			return false
		}
		failed <- n
		if n == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		panic(http.ErrAbortHandler) // the connection is cut
	}
	stop := f.sink(sink.Config{})
	f.output("main", "C1", "t1", long())
	select {
	case <-failed:
	case <-time.After(waitLimit):
		t.Fatal("the third chunk is not sent")
	}
	stop()
	f.sink(sink.Config{})
	final := f.finals(1)[0]
	require.Equal(t, topics.OutcomeDelivered, final.Outcome)
	require.Equal(t, numbers, f.main.texts())
	require.Equal(t, []adapter.Sent{{ID: "1.000"}, {ID: "2.000"}, {ID: "3.000"}, {ID: "4.000"}, {ID: "5.000"}}, report(t, final).Sent)
	require.Equal(t, channel.StatusSent, report(t, final).Status)
	three := f.main.requests("three")
	require.Len(t, three, 3)
	require.Contains(t, three[0].metadata, final.DeliveryID+"/2")
	for _, again := range three {
		require.Equal(t, three[0], again)
	}
	for _, m := range f.main.asked {
		require.Equal(t, post{"xoxb-main", "C1", "17.1", m.text, m.metadata}, m)
	}
	require.Empty(t, f.other.asked)
}

// The first answer of a conversation is retried: the second one waits for it, and other conversations and accounts do not.
func TestAnswersOfAConversationKeepTheirOrderAndDelayNoOther(t *testing.T) {
	t.Parallel()
	f := newChannelRig(t)
	hang, hanging := make(chan struct{}), make(chan struct{}, 10)
	f.main.answer = func(w http.ResponseWriter, p post, _ int) bool {
		if p.text != "first" || len(f.main.requests("first")) > 4 { // a fifth failure would open the circuit
			return false
		}
		hanging <- struct{}{}
		<-hang
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	t.Cleanup(func() {
		select {
		case <-hang:
		default:
			close(hang)
		}
	})
	f.sink(sink.Config{})
	f.output("main", "C1", "t1", "first")
	f.output("main", "C1", "t2", "second")
	select {
	case <-hanging:
	case <-time.After(waitLimit):
		t.Fatal("the first answer is not sent")
	}
	f.output("main", "C2", "t3", "elsewhere")
	f.output("other", "C1", "t4", "account")
	f.finals(2) // while the platform hangs
	require.Equal(t, []string{"elsewhere"}, f.main.texts())
	require.Equal(t, []string{"account"}, f.other.texts())
	require.Empty(t, f.main.requests("second"))
	close(hang)
	f.finals(4)
	require.Equal(t, []string{"elsewhere", "first", "second"}, f.main.texts())
}

// A dead delivery goes to its own origin when it is requeued, and continues where it ended.
func TestRequeuedAnswerContinuesAtItsOrigin(t *testing.T) {
	t.Parallel()
	f := newChannelRig(t)
	var archived atomic.Bool
	archived.Store(true)
	f.main.answer = func(w http.ResponseWriter, p post, _ int) bool {
		if p.text[:5] != "three" || !archived.Load() {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":false,"error":"is_archived"}`))
		return true
	}
	f.sink(sink.Config{})
	session := f.output("main", "C1", "t1", long())
	dead := f.finals(1)[0]
	require.Equal(t, topics.OutcomeDead, dead.Outcome)
	require.Contains(t, *dead.Reason, "is_archived")
	require.Equal(t, channel.StatusPartial, report(t, dead).Status)
	require.Len(t, report(t, dead).Sent, 2)

	f.configure("other")
	require.NoError(t, delivery.Requeue(t.Context(), f.to, f.agent, session, dead.DeliveryID))
	removed := f.finals(2)[1]
	require.Contains(t, *removed.Reason, channel.ReasonNoChannel)
	require.Len(t, report(t, removed).Sent, 2)
	require.Len(t, f.main.requests("three"), 1)

	archived.Store(false)
	f.configure("main", "other")
	require.NoError(t, delivery.Requeue(t.Context(), f.to, f.agent, session, dead.DeliveryID))
	final := f.finals(3)[2]
	require.Equal(t, topics.OutcomeDelivered, final.Outcome)
	require.Equal(t, numbers, f.main.texts())
	require.Empty(t, f.other.asked)
}

func TestEmptyAnswerEndsAsSuppressedAndPostsNothing(t *testing.T) {
	t.Parallel()
	f := newChannelRig(t)
	f.sink(sink.Config{})
	f.output("main", "C1", "t1", " \u200b\n")
	final := f.finals(1)[0]
	require.Equal(t, topics.OutcomeSuppressed, final.Outcome)
	require.Equal(t, channel.StatusSuppressed, report(t, final).Status)
	require.Empty(t, f.main.asked)
}
