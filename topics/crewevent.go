package topics

import (
	"bytes"
	"time"
)

// crewTime is the form of the times of events, always with milliseconds.
const crewTime = "2006-01-02T15:04:05.000Z"

var crewEventWire = wire[CrewEvent]{depth: MaxDepth, read: readValidCrewEvent, write: writeCrewEvent}

func readValidCrewEvent(c *cursor, e *CrewEvent) error {
	var fields Raw
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "type":
			e.Type, err = c.word()
		case "subject":
			e.Subject, err = c.word()
		case "seq":
			e.Seq, err = c.integer(64)
		case "version":
			e.Version, err = c.integer(64)
		case "cause":
			e.Cause, err = c.word()
		case "crewId":
			e.CrewID, err = c.word()
		case "projectId":
			e.ProjectID, err = c.word()
		case "timestamp":
			e.AtMS, err = c.instant()
		default:
			member := appendText(nil, string(name))
			var value Raw
			if value, err = c.value(); err == nil {
				fields = append(append(append(append(fields, ','), member...), ':'), appendRaw(nil, value)...)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case e.Type == "":
		return missing("type")
	case e.Subject == "":
		return missing("subject")
	case e.Seq < 1:
		return wrongType("seq", "not positive")
	}
	if fields != nil {
		fields[0] = '{'
		e.Fields = append(fields, '}')
	}
	return nil
}

// writeCrewEvent writes the frame. Fields must not repeat one of the members that every event has.
func writeCrewEvent(w *writer, e CrewEvent) {
	w.grow(len(e.Fields))
	w.open()
	w.word("type", e.Type)
	w.word("subject", e.Subject)
	w.integer("seq", e.Seq)
	w.integer("version", e.Version)
	w.word("cause", e.Cause)
	w.some("crewId", e.CrewID)
	w.some("projectId", e.ProjectID)
	w.word("timestamp", time.UnixMilli(e.AtMS).UTC().Format(crewTime))
	if members := bytes.TrimSpace(e.Fields); len(members) > 2 {
		if inner := bytes.TrimSpace(members[1 : len(members)-1]); len(inner) > 0 {
			w.next()
			w.b = append(w.b, inner...)
		}
	}
	w.close()
}
