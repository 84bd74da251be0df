package peer

import (
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/internal/retry"
	"github.com/turntable-streams/turntable/internal/rows/peerrow"
	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/topics"
)

// Bounds of attempts.
const (
	minWait       = 10 * time.Millisecond // before another attempt
	maxRetryAfter = 24 * time.Hour        // bound of a peer's Retry-After
	cancelTime    = 10 * time.Second      // for telling a peer that a task is cancelled
	maxDetail     = 4 << 10               // bytes of a peer's error
)

// attempt asks the sink for the next attempt of a task, or gives the task up if its time is over.
func (t *transition) attempt(task *peerrow.Task) {
	left := task.ExpiresMs - t.nowMS()
	if left <= 0 {
		t.giveUp(task)
		return
	}
	t.changed = true
	task.Attempts++
	timeout := time.Duration(min(task.TimeoutMs, left)) * time.Millisecond
	t.ask(task, "attempt/"+strconv.Itoa(int(task.Attempts)), task.Attempts, peerwire.Attempt{
		TaskID: task.Id, Request: task.Request, Timeout: timeout, Deadline: msTime(task.ExpiresMs), Repeat: task.Reached,
	})
	task.Phase, task.DueMs = peerrow.Task_ATTEMPT, t.leaseEnd(timeout)
}

// leaseEnd returns when an attempt that begins now counts as lost, in milliseconds since the epoch.
func (t *transition) leaseEnd(timeout time.Duration) int64 {
	return t.now.Add(timeout + t.config.Lease).UnixMilli()
}

// cancelAttempt tells the peer that a task is not wanted, if the peer may have it. The receipt of that changes nothing.
func (t *transition) cancelAttempt(task *peerrow.Task) {
	if task.Phase != peerrow.Task_ATTEMPT && !task.Reached || task.Phase == peerrow.Task_SETTLING {
		return
	}
	t.ask(task, "cancel", task.Attempts+1, peerwire.Attempt{
		TaskID: task.Id, Timeout: cancelTime, Deadline: t.now.Add(cancelTime), Cancel: true,
	})
}

func (t *transition) ask(task *peerrow.Task, step string, number uint32, a peerwire.Attempt) {
	lease := t.leaseEnd(a.Timeout)
	machine.Emit(&t.Effects, t.own.PeerAttempts, t.key, task.RunId+"/"+step, topics.Delivery{
		DeliveryID: task.RunId, SessionID: t.key, TurnID: turnOf(task.CallId), Attempt: int64(number),
		Route: topics.Destination{Kind: topics.KindPeer, Service: task.PeerId}, Body: a.Body(),
		CreatedMS: task.OpenedMs, ExpiresMS: max(task.ExpiresMs, lease), NotBeforeMS: t.nowMS(), LeaseUntilMS: lease,
	})
}

// receipted handles the sink's receipt of an attempt. A reply counts whichever attempt brought it: it is the peer's reply to
// this request. A failure counts only for the last attempt.
func (t *transition) receipted(e receipted) {
	r := e.Receipt
	task := t.byRun(r.DeliveryID)
	if task == nil || r.Final || task.Phase != peerrow.Task_PENDING && task.Phase != peerrow.Task_ATTEMPT {
		return
	}
	answer := answerOf(r)
	if answer.Reply != nil && t.fitsRecord(len(answer.Reply)) {
		if _, err := peerwire.ReadReply(answer.Reply, task.Id); err == nil {
			t.askSettle(task, &peerrow.Outcome{Reply: answer.Reply})
			return
		}
	}
	if task.Phase != peerrow.Task_ATTEMPT || r.Attempt != int64(task.Attempts) {
		return
	}
	t.changed = true
	task.Reached = task.Reached || answer.Reached
	switch {
	case r.Outcome == topics.OutcomeDeferred:
		t.postpone(task, t.waitForSink(task))
	case r.Reason != nil && *r.Reason == topics.ReasonInterrupted:
		t.postpone(task, t.wait(task, t.config.RetryInitial))
	case task.Once || isFinal(r, answer):
		t.askSettle(task, failureOf(r, answer))
	default:
		t.retry(task, failureOf(r, answer))
	}
}

// byRun returns the task with a run, nil if there is none.
func (t *transition) byRun(id string) *peerrow.Task {
	for _, x := range t.row.Tasks {
		if x.RunId == id && id != "" {
			return x
		}
	}
	return nil
}

// fitsRecord reports whether the record of an outcome with so many bytes can be written.
func (t *transition) fitsRecord(bytes int) bool { return bytes <= t.config.RecordLimit-recordReserve }

// answerOf returns what an attempt brought. Without the transport's answer, the peer may have got the request unless the sink
// says that it made no attempt.
func answerOf(r topics.Receipt) peerwire.Answer {
	if r.Response != nil {
		if a, err := peerwire.ReadAnswer(r.Response); err == nil {
			if a.Code == "" {
				a.Code = peerwire.CodeMalformed // of a reply that is not one
			}
			return a
		}
	}
	a := peerwire.Answer{Code: peerwire.CodeUnreachable, Reached: r.Outcome != topics.OutcomeRefused && r.Outcome != topics.OutcomeDeferred}
	switch {
	case r.Outcome == topics.OutcomeDelivered:
		a.Code = peerwire.CodeMalformed
	case r.Reason != nil && *r.Reason == topics.ReasonTimeout:
		a.Code = peerwire.CodeTimeout
	}
	return a
}

// isFinal reports whether another attempt would fail too, or must not be made.
func isFinal(r topics.Receipt, a peerwire.Answer) bool {
	if r.Outcome == topics.OutcomeRefused {
		return true
	}
	switch a.Code {
	case peerwire.CodeUnreachable, peerwire.CodeTimeout, peerwire.CodePeerBusy:
		return false
	case peerwire.CodePeerRefused, peerwire.CodeMalformed:
		return r.Status < 500
	default:
		return true
	}
}

func failureOf(r topics.Receipt, a peerwire.Answer) *peerrow.Outcome {
	return &peerrow.Outcome{
		Code: string(a.Code), HttpStatus: r.Status, RetryAfterMs: min(max(r.RetryAfterMS, 0), maxRetryAfter.Milliseconds()),
		Detail: truncate.Text(a.Detail, maxDetail), Answered: a.Answered,
	}
}

// retry schedules another attempt after a failed one. If the next attempt would come too late, the task ends with this failure.
func (t *transition) retry(task *peerrow.Task, failure *peerrow.Outcome) {
	task.Failures++
	task.Deferrals = 0
	task.Outcome = nil
	if !t.room(len(failure.Detail)) {
		failure.Detail = ""
	}
	task.Outcome = failure
	upper := retry.Bound(t.config.RetryInitial, t.config.RetryLongest, task.Failures)
	t.postpone(task, max(t.wait(task, upper), time.Duration(failure.RetryAfterMs)*time.Millisecond))
}

// waitForSink returns the wait of a task that the sink has deferred. The waits grow, because every attempt writes the whole
// request, but none takes more than half of the time that the task has left.
func (t *transition) waitForSink(task *peerrow.Task) time.Duration {
	task.Deferrals++
	left := time.Duration(task.ExpiresMs-t.nowMS()) * time.Millisecond
	upper := min(retry.Bound(t.config.RetryInitial, t.config.RetryLongest, task.Deferrals), left/2)
	return t.wait(task, max(upper, t.config.RetryInitial))
}

// wait returns a wait of at least half of upper.
func (t *transition) wait(task *peerrow.Task, upper time.Duration) time.Duration {
	return upper/2 + retry.Jitter(upper/2, ofJitter, task.RunId, strconv.Itoa(int(task.Attempts)))
}

// postpone schedules the next attempt, or gives the task up if that is after its end.
func (t *transition) postpone(task *peerrow.Task, wait time.Duration) {
	due := t.now.Add(max(wait, minWait)).UnixMilli()
	if due >= task.ExpiresMs {
		t.giveUp(task)
		return
	}
	task.Phase, task.DueMs = peerrow.Task_PENDING, due
}

// giveUp ends a task whose time is over, with its last failure.
func (t *transition) giveUp(task *peerrow.Task) {
	outcome := task.Outcome
	if outcome == nil {
		outcome = &peerrow.Outcome{Code: string(peerwire.CodeTimeout)}
	}
	t.askSettle(task, outcome)
}
