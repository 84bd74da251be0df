package processors

import (
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// settings are the options of New that callbacks use.
type settings struct {
	group        goka.Group
	loop         string // the loop topic
	deadLetters  goka.Stream
	recordBytes  int
	onDeadLetter func(*RecordError)
	logger       *zap.Logger
}

// defaults are the settings of a group under a plain goka.NewProcessor.
func defaults(group goka.Group) *settings {
	return &settings{
		group:        group,
		deadLetters:  deadLetterStream(group),
		recordBytes:  defaultRecordBytes,
		onDeadLetter: func(*RecordError) {},
		logger:       zap.NewNop(),
	}
}

// bound is the context of a deadline's callback under New. It carries the settings past the table's codec, which calls
// OnDeadline without them.
type bound struct {
	runtimeapi.Runtime
	settings *settings
}

func (s *settings) bind(ctx goka.Context) goka.Context {
	if r, ok := ctx.(runtimeapi.Runtime); ok {
		return &bound{Runtime: r, settings: s}
	}
	return ctx
}

// unbound returns the context that bind was given.
func unbound(ctx goka.Context) goka.Context {
	if b, ok := ctx.(*bound); ok {
		return b.Runtime
	}
	return ctx
}

// settingsOf returns the settings that a deadline's context carries, or the defaults.
func settingsOf(ctx goka.Context) *settings {
	if b, ok := ctx.(*bound); ok {
		return b.settings
	}
	return defaults(ctx.Group())
}
