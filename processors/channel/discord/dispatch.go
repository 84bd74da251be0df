package discord

import (
	"context"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

// ready is https://discord.com/developers/docs/topics/gateway-events#ready.
type ready struct {
	Session string `json:"session_id"`
	Resume  string `json:"resume_gateway_url"`
	User    user   `json:"user"`
}

// handle handles an event of the gateway, and tries again until ctx ends or the event ends the connection.
func (a *Adapter) handle(ctx context.Context, f frame, r *resumable, to adapter.Receiver) error {
	for failed := 0; ; failed++ {
		err := a.dispatch(ctx, f, r, to)
		if err == nil || f.Event == "READY" {
			return err
		}
		a.config.Logger.Warn("discord: event was not handled; it is tried again after a wait",
			zap.String("account", a.config.Account), zap.String("event", adapter.Code(f.Event)), zap.Int64("sequence", f.Sequence))
		if !clock.Sleep(ctx, a.config.Clock, platform.ReconnectWait(failed)) {
			return ctx.Err()
		}
	}
}

// dispatch handles an event of the gateway. An event that cannot be read is skipped, because it would be replayed indefinitely.
func (a *Adapter) dispatch(ctx context.Context, f frame, r *resumable, to adapter.Receiver) error {
	unreadable := func() error {
		a.config.Logger.Warn("discord: event cannot be read; it is skipped",
			zap.String("account", a.config.Account), zap.String("event", adapter.Code(f.Event)), zap.Int64("sequence", f.Sequence))
		return nil
	}
	switch f.Event {
	case "READY":
		var is ready
		if err := platform.Decode(f.Data, &is); err != nil || is.Session == "" {
			return &adapter.Failure{Reason: "session has no ID"}
		}
		r.id, r.url, r.bot = is.Session, a.resumeAt(is.Resume), is.User.ID
	case "MESSAGE_CREATE":
		var m message
		if err := platform.Decode(f.Data, &m); err != nil {
			return unreadable()
		}
		if !m.written() || m.Author.ID == r.bot {
			return nil
		}
		where, err := a.locate(ctx, m.Channel, m.Guild)
		if err != nil {
			return err
		}
		return to.Receive(ctx, a.inbound(m, where, r.bot))
	case "INTERACTION_CREATE":
		var i interaction
		if err := platform.Decode(f.Data, &i); err != nil {
			return unreadable()
		}
		if err := a.pressed(ctx, i, to); err != nil {
			return err
		}
		a.answered(ctx, i)
	}
	return nil
}
