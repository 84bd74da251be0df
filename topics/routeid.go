package topics

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	out := writer{b: make([]byte, 0, len(descriptor)+64)}
	out.open()
	err := read(descriptor, MaxDepth, func(c *cursor) error {
		return c.object(func(name []byte) error {
			switch string(name) {
			case memberToken, memberRouteID:
				return c.skip()
			}
			out.next()
			out.b = append(appendText(out.b, string(name)), ':')
			value, err := c.value()
			out.b = appendRaw(out.b, value)
			return err
		})
	})
	if err != nil {
		return nil
	}
	out.word(memberRouteID, id)
	out.close()
	return out.b
}

// RouteIDOf is the route_id of a reply descriptor, empty where it has none.
func RouteIDOf(descriptor Raw) string { return member(descriptor, memberRouteID) }

// TokenOf is the bearer token of a reply descriptor, empty where it has none.
func TokenOf(descriptor Raw) string { return member(descriptor, memberToken) }

// ServiceOf is the service that a reply descriptor names, empty where it names none.
func ServiceOf(descriptor Raw) string { return member(descriptor, "callbackService") }

// member is the text form of an object's own member.
func member(object Raw, name string) string {
	value, _ := Lookup(object, name)
	if text := TextOf(value); text != nil {
		return *text
	}
	return ""
}
