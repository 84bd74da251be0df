package processors

import (
	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/internal/callback"
)

// settings are the options of New that a callback needs to know.
type settings struct {
	deadLetters  goka.Stream
	recordBytes  int
	onDeadLetter func(*RecordError)
}

// bound is the context of a callback under New.
type bound struct {
	callback.Runtime
	settings *settings
}

// bind is a binder.
func (s *settings) bind(ctx goka.Context) goka.Context {
	if r, ok := ctx.(callback.Runtime); ok {
		return &bound{Runtime: r, settings: s}
	}
	return ctx
}

// settingsOf are the settings of a callback; the defaults under a plain goka.NewProcessor.
func settingsOf(ctx goka.Context) *settings {
	if b, ok := ctx.(*bound); ok {
		return b.settings
	}
	return &settings{
		deadLetters:  deadLetterStream(ctx.Group()),
		recordBytes:  defaultRecordBytes,
		onDeadLetter: func(*RecordError) {},
	}
}
