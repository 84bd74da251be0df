package processors

import (
	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
)

// settings are the options of New that callbacks use.
type settings struct {
	group        goka.Group
	loop         string // the loop topic
	deadLetters  goka.Stream
	recordBytes  int
	limits       *cut.Limits // nil: recordBytes for all topics
	written      []string    // the topics whose records are not truncated to their limits
	onDeadLetter func(*RecordError)
	logger       *zap.Logger
}

// limitOf returns the size of the largest record that a topic accepts.
func (s *settings) limitOf(topic string) int {
	if s.limits == nil {
		return s.recordBytes
	}
	return s.limits.Of(topic)
}

// isNarrow reports whether a topic accepts less than recordBytes.
func (s *settings) isNarrow() bool { return s.limits != nil && s.limits.Narrow() }

// table is the topic of the group's rows.
func (s *settings) table() string { return string(goka.GroupTable(s.group)) }

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

func deadLetterStream(group goka.Group) goka.Stream { return goka.Stream(string(group) + "-dlq") }
