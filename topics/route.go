package topics

import "bytes"

var routeWire = wire[Route]{depth: MaxValueDepth, read: readRoute, write: writeRoute}

// readRoute keeps the bytes of the descriptor, because it is passed on unchanged, with all its fields.
func readRoute(c *cursor, r *Route) error {
	err := c.record(func(name []byte) (err error) {
		switch string(name) {
		case "callbackService":
			r.CallbackService, err = c.text()
		case "request_id":
			r.RequestID, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	end := c.dec.InputOffset()
	r.Raw = Raw(bytes.TrimLeft(c.raw[:end:end], " \t\r\n"))
	return nil
}

// writeRoute writes the bytes of a descriptor that was read, otherwise the fields.
func writeRoute(w *writer, r Route) {
	if r.Raw != nil {
		w.grow(len(r.Raw))
		w.b = append(w.b, r.Raw...)
		return
	}
	w.open()
	w.present("callbackService", r.CallbackService)
	w.present("request_id", r.RequestID)
	w.close()
}
