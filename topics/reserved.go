package topics

import "strings"

// reservedPrefix begins the names of the metadata members that only processors write.
const reservedPrefix = "turntable_"

// Reserved reports whether a member of a message's metadata may be written by processors only, such as MetaOrigin. Doors drop
// such members of their callers.
func Reserved(name string) bool { return strings.HasPrefix(name, reservedPrefix) }

// WithoutMembers returns an object without the members for whose names drop reports true. The other members keep their bytes
// and order. A value without such members, or that is not an object, is returned unchanged.
func WithoutMembers(object Raw, drop func(name string) bool) Raw {
	var names []string
	if err := read(object, MaxDepth, func(c *cursor) error {
		names = nil
		return c.object(func(name []byte) error {
			if drop(string(name)) {
				names = append(names, string(name))
			}
			return c.skip()
		})
	}); err != nil || len(names) == 0 {
		return object
	}
	w, err := without(object, names...)
	if err != nil {
		return object
	}
	w.close()
	return w.b
}

// WithoutChannel returns a reply descriptor without the members that only processors write: those that name an origin or a
// delegated task. A caller that could set them would choose in which conversation an output appears. The other members keep
// their bytes and order.
func WithoutChannel(descriptor Raw) Raw {
	return WithoutMembers(descriptor, func(name string) bool { return name == memberOrigin || name == memberDelegation })
}
