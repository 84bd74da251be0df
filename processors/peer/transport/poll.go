package transport

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/turntable-streams/turntable/internal/peerwire"
	"github.com/turntable-streams/turntable/processors/peer"
)

const (
	// firstPause and longestPause bound the wait between two polls of which the peer holds neither.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
	// pollMargin is how much longer than it is asked to a peer may hold a poll. A connection that was lost unnoticed is found
	// by it.
	pollMargin = 15 * time.Second
	// longestRefused bounds the Retry-After of a poll: the peer says when it can be asked again, not when the task ends.
	longestRefused = time.Minute
)

// poll asks how a task is until it has ended, or ctx ends. The peer has accepted the task. Every poll has the peer's token of the
// configuration at that time: tokens are replaced while tasks run. A peer that was removed, or moved, is not asked any more.
func (t *Transport) poll(ctx context.Context, peer peer.Outbound, taskID string) outcome {
	pause := t.pause
	for {
		latest, ok := t.peer(peer.ID)
		if !ok || latest.BaseURL != peer.BaseURL {
			return failed(peerwire.CodeUnknownPeer, "unknown peer", final, reached)
		}
		peer.Token = latest.Token
		wait, begun := waitOf(ctx), time.Now()
		o, asked := t.ask(ctx, peer, taskID, wait)
		if o != nil {
			return withoutToken(*o, peer).alsoReached(true)
		}
		if held := time.Duration(wait) * time.Second / 2; held > 0 && time.Since(begun) >= held && asked == 0 {
			pause = t.pause
			continue
		}
		timer := time.NewTimer(max(pause, asked))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return interruption(ctx, network{answered: true, sent: true})
		}
		pause = min(2*pause, longestPause)
	}
}

// ask makes one poll, which the peer holds for wait seconds. The outcome is nil if the task runs on as far as is known; the next
// poll must then be later by again.
func (t *Transport) ask(ctx context.Context, peer peer.Outbound, taskID string, wait int) (o *outcome, again time.Duration) {
	inner, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Second+pollMargin)
	defer cancel()
	r, err := t.request(inner, http.MethodGet, peer, taskPath(taskID)+"?wait="+strconv.Itoa(wait)+"s", nil)
	if err != nil {
		o := failed(peerwire.CodeUnreachable, "request cannot be made", final)
		return &o, 0
	}
	response, body, lost := t.do(inner, r, peerwire.MaxReply)
	var end outcome
	switch {
	case lost != nil && ctx.Err() != nil:
		end = interruption(ctx, network{answered: true, sent: true})
	case lost != nil:
		return nil, 0 // a connection was lost: the task runs on
	case response.StatusCode == http.StatusAccepted:
		return nil, 0
	case response.StatusCode >= 200 && response.StatusCode < 300:
		end = replied(response.StatusCode, body, taskID)
	default:
		end = refused(response, body, t.clock.Now())
		if !end.failure.Final {
			return nil, min(end.failure.RetryAfter, longestRefused)
		}
		if response.StatusCode == http.StatusNotFound { // the peer has forgotten the task
			end.answer.Code = peerwire.CodeOutcomeUnknown
		}
	}
	return &end, 0
}
