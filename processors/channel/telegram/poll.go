package telegram

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
)

const (
	// pollTimeout is how long Telegram holds a request open while there are no updates.
	pollTimeout = 50 * time.Second
	// pollLimit is how many updates are read at once, so that a response stays below platform.MaxResponse.
	pollLimit = 10
)

// getUpdates are the parameters of https://core.telegram.org/bots/api#getupdates.
type getUpdates struct {
	Offset  int64    `json:"offset,omitzero"`
	Limit   int      `json:"limit"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

// Run passes the bot's updates to a receiver, oldest first, by long polling, until ctx ends; it then returns nil. An update is
// confirmed to Telegram after the receiver returned nil for it: after an error it is read again, and also those that were
// handled last before a crash. After a failed request Run waits, from one second to one minute, or as long as Telegram
// says. No webhook may be set, and Run may be running only once per bot: Telegram answers 409 otherwise, and Run tries again.
func (a *Adapter) Run(ctx context.Context, to adapter.Receiver) error {
	var next int64 // the first update that was not handled; 0 before the first
	return platform.Poll(ctx, a.config.Clock, a.config.Logger, func(ctx context.Context) (progress bool, err error) {
		result, err := a.call(ctx, a.poll, "getUpdates", getUpdates{
			Offset: next, Limit: pollLimit, Timeout: int(pollTimeout / time.Second), Allowed: []string{"message", "callback_query"},
		})
		if err != nil {
			return false, err
		}
		var updates []jsontext.Value
		if err := platform.Decode(result, &updates); err != nil {
			return false, &adapter.Failure{Reason: "response cannot be read"}
		}
		before := next
		for _, raw := range updates {
			id, ok := a.handle(ctx, raw, to)
			if !ok {
				return progress, &adapter.Failure{Reason: "update was not handled"}
			}
			if id > 0 {
				next, progress = max(next, id+1), true
			}
		}
		if len(updates) > 0 && next == before {
			return progress, &adapter.Failure{Reason: "updates have no new IDs"} // they would be read again at once
		}
		return true, nil
	})
}

// handle passes on an update and returns its ID, and false if it has to be read again. An update that cannot be read is skipped,
// because it would be read again indefinitely.
func (a *Adapter) handle(ctx context.Context, raw jsontext.Value, to adapter.Receiver) (int64, bool) {
	var u update
	if err := platform.Decode(raw, &u); err != nil {
		return a.unreadable(raw), true
	}
	in, ok := a.inbound(u)
	if !ok {
		return u.ID, true
	}
	if err := to.Receive(ctx, in); err != nil {
		return 0, false
	}
	if u.Callback != nil {
		a.answered(ctx, u.Callback.ID)
	}
	return u.ID, true
}

// unreadable logs that an update is skipped and returns its ID, 0 if it has none.
func (a *Adapter) unreadable(raw []byte) int64 {
	var only struct {
		ID int64 `json:"update_id"`
	}
	_ = platform.Decode(raw, &only) // the ID is decoded even if other members are not as expected
	a.config.Logger.Warn("telegram: update cannot be read; it is skipped", zap.Int64("update_id", only.ID))
	return only.ID
}
