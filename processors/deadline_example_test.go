package processors_test

import (
	"context"
	"encoding/binary"
	"log"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// reminders is a table whose rows are deadlines: eight bytes, in milliseconds.
type reminders struct {
	remind func(*processors.Context) error
}

func (reminders) Encode(v any) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(v.(time.Time).UnixMilli())), nil
}

func (reminders) Decode(b []byte) (any, error) {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b))), nil
}

func (reminders) Deadline(row []byte) (ms int64, ok bool) {
	if len(row) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(row)), true
}

func (r reminders) OnDeadline(ctx goka.Context, _ processors.Due) {
	processors.OnDeadline(ctx, r.remind)
}

// A table whose codec is Timed: each row fires when its deadline is due. A wish is a duration, such as "20m".
func ExampleOnDeadline() {
	wishes := topics.New(topics.Spec{Name: "wishes"}, codec.String())
	reminded := topics.New(topics.Spec{Name: "reminders"}, codec.String())
	table := reminders{func(c *processors.Context) error {
		due := c.Value().(time.Time)
		if due.After(c.Now()) {
			return nil // the row has a later deadline by now
		}
		if err := processors.EmitWithID(c, reminded, c.Key(), "it is time", "reminder/"+due.Format(time.RFC3339Nano)); err != nil {
			return err
		}
		return c.Delete()
	}}
	edges := processors.Edges("clock", processors.Input(wishes,
		func(c *processors.Context, in codec.Decoded[string]) error {
			wait, err := time.ParseDuration(in.Value)
			if err != nil {
				return c.DeadLetter("no duration")
			}
			return c.SetValue(c.Now().Add(wait))
		}))
	graph := goka.DefineGroup("clock", append(edges,
		goka.Persist(table), goka.Output(reminded.Stream(), reminded.Codec()))...)

	p, err := processors.New([]string{"localhost:9092"}, graph)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
