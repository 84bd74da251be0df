package think

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
)

// returned is what a model returned.
type returned struct {
	reply Reply
	err   error
}

// call makes one call of the model when the limits admit it. It returns errNotAdmitted if ctx reached its deadline
// while the call waited for them.
// It returns a few seconds after the end of ctx, with or without the model.
func (w *Worker) call(ctx context.Context, s Step) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, ctx.Err() // the limits have not been asked
	}
	leave, err := worker.Enter(ctx, w.rules.Limiter, s.SessionID, s, w.limits...)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Reply{}, errNotAdmitted
	default:
		return Reply{}, err
	}
	a, ok := responder.CallOverdue(ctx, &w.calls, func(ctx context.Context) returned {
		reply, err := ask(ctx, w.model, s)
		w.account(s, reply, err) // before another call is admitted
		return returned{reply, err}
	}, leave, responder.ReportOverdue(w.rules.Logger, "model",
		zap.String("agent", w.topics.Agent), zap.String("model", w.rules.model.Model(s)), zap.String("step", s.Key)))
	if !ok {
		return Reply{}, ctx.Err()
	}
	return a.reply, a.err
}

// unknownPause is how long a model is not called whose provider limits the rate and does not say for how long.
const unknownPause = time.Second

// account tells the limiter what a call has used and how long the provider asks to wait.
func (w *Worker) account(s Step, r Reply, err error) {
	l, m := w.rules.Limiter, w.rules.model
	var u *Unavailable
	unavailable := errors.As(err, &u)
	if unavailable && (u.RateLimit || u.After > 0) {
		pause := u.After
		if pause <= 0 {
			pause = unknownPause
		}
		l.Pause(requestLimit, m.Model(s), pause)
		w.rules.Logger.Warn("the model's provider limits its calls: it is not called for a time",
			zap.String("agent", w.topics.Agent), zap.String("model", m.Model(s)), zap.Duration("wait", pause))
	}
	if used := int(r.InputTokens + r.OutputTokens); m.TokensPerMinute > 0 && (used > 0 || unavailable) {
		l.Take(tokenLimit, m.Model(s), used-max(m.Tokens(s), 1))
	}
}

// answer returns the model's reply. If it is empty, the model is asked once more.
func (w *Worker) answer(ctx context.Context, s Step) (Reply, error) {
	first := s
	first.Retried = func(err error) bool { return errors.Is(err, ErrEmpty) || s.Retried(err) }
	reply, err := w.call(ctx, first)
	if !errors.Is(err, ErrEmpty) || ctx.Err() != nil {
		return reply, err
	}
	w.rules.Logger.Warn("the model's reply is empty: it is asked once more",
		zap.String("agent", w.topics.Agent), zap.String("model", w.rules.model.Model(s)), zap.String("step", s.Key))
	used := reply.usage()
	s.Again = true
	reply, err = w.call(ctx, s)
	return reply.with(used.plus(reply.usage())), err
}

func ask(ctx context.Context, m Model, s Step) (reply Reply, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic // without the panic value, which may quote the conversation
		}
	}()
	if reply, err = m.Think(ctx, s); err != nil {
		return reply, err
	}
	return reply.read(s)
}
