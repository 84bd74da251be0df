package topics

import "github.com/go-json-experiment/json/jsontext"

var failureWire = wire[ThinkFailure]{depth: MaxDepth, read: readFailure, write: writeFailure}

// readFailure accepts both shapes. If originalValue cannot be decoded, LatestInput is nil: the record still reports that
// the model worker gave up.
func readFailure(c *cursor, f *ThinkFailure) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "latest_input":
			f.LatestInput, err = c.document()
		case "error":
			f.Reason, err = c.text()
		case "originalValue":
			var original *string
			if original, err = c.text(); err == nil && original != nil {
				f.LatestInput = latestInput([]byte(*original))
			}
		default:
			err = c.skip()
		}
		return err
	})
}

func latestInput(enriched []byte) (input Raw) {
	err := read(enriched, MaxDepth, func(c *cursor) error {
		input = nil
		return c.record(func(name []byte) (err error) {
			if string(name) == "latest_input" {
				input, err = c.document()
				return err
			}
			return c.skip()
		})
	})
	if err != nil {
		return nil
	}
	return input
}

// writeFailure writes the second shape. The first one consists of the bytes of another record.
func writeFailure(w *writer, f ThinkFailure) {
	w.open()
	w.name("originalValue")
	if f.LatestInput == nil {
		w.b = append(w.b, "null"...)
	} else {
		w.b, _ = jsontext.AppendQuote(w.b, encode(EnrichedMessage{LatestInput: f.LatestInput}, writeEnriched))
	}
	w.text("error", f.Reason)
	w.close()
}
