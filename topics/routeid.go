package topics

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// RouteID names a reply route by the cause id of its reply-to record: whoever reads the record comes to the same name.
// An output carries it in place of the route's bearer token where deliveries are made by processors/delivery.
func RouteID(session, cause string) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range []string{"route", session, cause} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Members of a reply descriptor that this project gives a meaning.
const (
	memberToken   = "bearerToken"
	memberRouteID = "route_id"
)

// WithoutToken is a reply descriptor with route_id in place of its bearer token. The other members keep their bytes and
// order; a route_id of the descriptor's own goes. What is no object has nothing to say: nil.
func WithoutToken(descriptor Raw, id string) Raw {
	w, err := without(descriptor, memberToken, memberRouteID)
	if err != nil {
		return nil
	}
	w.word(memberRouteID, id)
	w.close()
	return w.b
}

// WithoutReplyTo is an output without its reply descriptor, as a delivery carries it. The other members keep their
// bytes and order. What is no object is nil.
func WithoutReplyTo(output Raw) Raw {
	w, err := without(output, "reply_to")
	if err != nil {
		return nil
	}
	w.close()
	return w.b
}

// without is an object that is still open, without members of those names.
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

// RouteIDOf is the route_id of a reply descriptor, empty where it has none.
func RouteIDOf(descriptor Raw) string { return member(descriptor, memberRouteID) }

// TokenOf is the bearer token of a reply descriptor, empty where it has none.
func TokenOf(descriptor Raw) string { return member(descriptor, memberToken) }

// ServiceOf is the service that a reply descriptor names, empty where it names none.
func ServiceOf(descriptor Raw) string { return member(descriptor, "callbackService") }

// member is the text form of an object's own member, as Java's asText has it: that of an object or an array is empty.
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
