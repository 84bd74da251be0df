package processors_test

import (
	"context"
	"log"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// session is a row that is written with every event. Its document, which is large and changes rarely, is a part of the row.
type session struct {
	Events   int    `json:"events"`
	Document uint32 `json:"document"` // the number of the part; 0 means no document
}

func row(c *processors.Context) session {
	decoded, _ := c.Value().(codec.Decoded[session])
	return decoded.Value
}

// onEvent counts an event. It does not write the document.
func onEvent(c *processors.Context, _ codec.Decoded[string]) error {
	s := row(c)
	s.Events++
	return c.SetValue(s)
}

// onDocument replaces the document. The new one gets a new number, so that a crash leaves the old row with its document.
func onDocument(c *processors.Context, in codec.Decoded[[]byte]) error {
	if in.Tombstone() {
		return nil
	}
	s := row(c)
	old := s.Document
	s.Document++
	if err := c.SetPart(s.Document, in.Value); err != nil {
		return err
	}
	if old > 0 {
		if err := c.DeletePart(old); err != nil {
			return err
		}
	}
	return c.SetValue(s)
}

// A table whose rows have a part. Context.Part reads it.
func ExampleContext_SetPart() {
	events := topics.New(topics.Spec{Name: "events"}, codec.String())
	documents := topics.New(topics.Spec{Name: "documents"}, codec.Bytes())
	edges := processors.Edges("sessions", processors.Input(events, onEvent), processors.Input(documents, onDocument))
	graph := goka.DefineGroup("sessions", append(edges, goka.Persist(codec.JSON[session]()))...)

	p, err := processors.New([]string{"localhost:9092"}, graph)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
