package topics

import "slices"

// RouteID returns the ID of a reply route. It is derived from the session and the cause ID of the reply-to record, so every
// reader of the record computes the same ID. If processors/delivery makes the deliveries, an output contains the route ID
// instead of the route's bearer token.
func RouteID(session, cause string) string { return identity("route", session, cause) }

// The members of a reply descriptor that this package reads or writes.
const (
	memberToken   = "bearerToken"
	memberRouteID = "route_id"
)

// WithoutToken returns a reply descriptor without its bearer token and with the given route_id, which replaces an existing
// one. The other members keep their bytes and order. For a descriptor that is not an object it returns nil.
func WithoutToken(descriptor Raw, id string) Raw {
	w, err := without(descriptor, memberToken, memberRouteID)
	if err != nil {
		return nil
	}
	w.word(memberRouteID, id)
	w.close()
	return w.b
}

// WithoutReplyTo returns an output without its reply descriptor, which is the body of a delivery. The other members keep
// their bytes and order. For an output that is not an object it returns nil.
func WithoutReplyTo(output Raw) Raw {
	w, err := without(output, "reply_to")
	if err != nil {
		return nil
	}
	w.close()
	return w.b
}

// without writes an object without the named members. The caller adds members and closes the object.
func without(object Raw, names ...string) (*writer, error) {
	w := &writer{b: make([]byte, 0, len(object)+64)}
	err := read(object, MaxDepth, func(c *cursor) error {
		w.b = w.b[:0]
		w.open()
		return c.object(func(name []byte) error {
			if slices.Contains(names, string(name)) {
				return c.skip()
			}
			w.next()
			w.b = append(appendText(w.b, string(name)), ':')
			value, err := c.value()
			w.b = appendRaw(w.b, value)
			return err
		})
	})
	return w, err
}

// RouteIDOf returns the route_id of a reply descriptor, empty if it has none.
func RouteIDOf(descriptor Raw) string { return member(descriptor, memberRouteID) }

// TokenOf returns the bearer token of a reply descriptor, empty if it has none. It is a secret.
func TokenOf(descriptor Raw) string { return member(descriptor, memberToken) }

// ServiceOf returns the callback service of a reply descriptor, empty if it has none.
func ServiceOf(descriptor Raw) string { return member(descriptor, memberService) }

// member returns the text of a top-level member as Java's asText does: empty for an object or an array.
func member(object Raw, name string) string {
	value, _ := Lookup(object, name)
	if len(value) > 0 && (value[0] == '{' || value[0] == '[') {
		return ""
	}
	if text := TextOf(value); text != nil {
		return *text
	}
	return ""
}
