package voice

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// The reasons of failures.
const (
	ReasonEnded   = "call has ended"
	reasonTooLong = "text is too long to be spoken"
)

func ended() *adapter.Failure { return &adapter.Failure{Reason: ReasonEnded, Final: true} }

// Send implements adapter.Adapter: it speaks the text in the call that is the Recipient. Answers of a call are spoken one after the
// other. It returns when the Player has the audio.
func (c *Calls) Send(ctx context.Context, chunk adapter.Chunk) (adapter.Sent, error) {
	switch {
	case chunk.To.Channel != Channel || chunk.To.Account != c.config.Account:
		return adapter.Sent{}, &adapter.Failure{Reason: "channel is not configured", Final: true}
	case len(chunk.Text) > MaxText:
		return adapter.Sent{}, &adapter.Failure{Reason: reasonTooLong, Final: true}
	}
	call := c.call(chunk.To.Recipient)
	if call == nil {
		return adapter.Sent{}, ended()
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	defer context.AfterFunc(call.ctx, cancel)()
	if err := call.speak(ctx, chunk); err != nil {
		return adapter.Sent{}, call.failure(ctx, err)
	}
	return adapter.Sent{ID: chunk.Key}, nil
}

func (c *Call) speak(ctx context.Context, chunk adapter.Chunk) error {
	select {
	case c.speaking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.speaking }()
	if err := c.ctx.Err(); err != nil { // select takes either if both are ready
		return err
	}
	if chunk.Key != "" && slices.Contains(c.played, chunk.Key) {
		return nil
	}
	audio, err := c.synthesize(ctx, chunk.Text)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.player.Play(ctx, audio); err != nil {
		return errors.Join(errPlay, err)
	}
	c.played = append(c.played, chunk.Key)
	c.played = c.played[max(0, len(c.played)-maxPlayed):]
	return nil
}

var errPlay = errors.New("voice: the call did not take the audio")

// synthesize returns the audio of a text.
func (c *Call) synthesize(ctx context.Context, text string) ([]byte, error) {
	limit := c.calls.config.MaxAudio
	stream, err := c.calls.config.Synthesizer.Synthesize(ctx, text)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	audio, err := io.ReadAll(io.LimitReader(stream, limit+1))
	if stop() {
		_ = stream.Close() // all that is used was read
	}
	switch {
	case err != nil:
		return nil, err
	case int64(len(audio)) > limit:
		return nil, &adapter.Failure{Reason: "audio is too large", Final: true}
	case len(audio) == 0:
		return nil, &adapter.Failure{Reason: "speech has no audio"}
	}
	return audio, nil
}

// failure returns the failure of an attempt in a call.
func (c *Call) failure(ctx context.Context, err error) *adapter.Failure {
	var failure *adapter.Failure
	switch {
	case c.ctx.Err() != nil, errors.Is(err, ErrEnded):
		return ended()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &adapter.Failure{Reason: topics.ReasonTimeout}
	case ctx.Err() != nil:
		return &adapter.Failure{Reason: topics.ReasonInterrupted}
	case errors.Is(err, errPlay):
		return &adapter.Failure{Reason: "call did not take the audio"}
	case errors.As(err, &failure):
		return failure
	default:
		return &adapter.Failure{Reason: "speech cannot be synthesized"}
	}
}
