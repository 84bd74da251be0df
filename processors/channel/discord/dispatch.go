package discord

import (
	"context"

	"go.uber.org/zap"

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
	if f.Event == "READY" {
		var is ready
		if err := platform.Decode(f.Data, &is); err != nil || is.Session == "" {
			return &adapter.Failure{Reason: "session has no ID"}
		}
		r.id, r.url, r.bot = is.Session, a.resumeAt(is.Resume), is.User.ID
		return nil
	}
	return platform.Persist(ctx, a.config.Clock, func() error {
		err := a.dispatch(ctx, f, r.bot, to)
		if err != nil {
			a.warn("discord: event was not handled; it is tried again after a wait", f)
		}
		return err
	})
}

func (a *Adapter) warn(text string, f frame) {
	a.config.Logger.Warn(text, zap.String("event", adapter.Code(f.Event)), zap.Int64("sequence", f.Sequence))
}

// dispatch handles an event of the gateway. An event that cannot be read is skipped, because it would be replayed indefinitely.
func (a *Adapter) dispatch(ctx context.Context, f frame, bot string, to adapter.Receiver) error {
	unreadable := func() error {
		a.warn("discord: event cannot be read; it is skipped", f)
		return nil
	}
	switch f.Event {
	case "MESSAGE_CREATE":
		var m message
		if err := platform.Decode(f.Data, &m); err != nil {
			return unreadable()
		}
		if !m.written() || m.Author.ID == bot {
			return nil
		}
		where, err := a.locate(ctx, m.Channel, m.Guild)
		if err != nil {
			return err
		}
		return to.Receive(ctx, a.inbound(m, where, bot))
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
