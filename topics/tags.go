package topics

import (
	"cmp"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Most records are described by the tags of their fields, of which each has one. The members are written in the order of the
// fields:
//
//	json:"name"            the member; nil is written as null
//	json:"name,omitzero"   left out if it is zero
//	json:"name,omitempty"  left out if it is an empty list
//	with:"Field"           left out if the other field is zero
//	without:"Field"        left out unless the other field is zero
//	as:"int32"             an integer of 32 bits
//	as:"time"              milliseconds since the epoch, in the record an ISO 8601 text
//	as:"object"            a Raw that is an object or null
//	as:"list"              a Raw that is an array of objects or null
//	as:"merged"            an object that adds to an earlier one of the same name instead of replacing it
//	nil:"[]"               what is written for a Raw that is nil
//
// The records of every step, such as Message and AgentEvent, have a function for each direction: it is faster, and can read
// several versions of a record. Their tags only describe what these functions do: the JSON Schemas are made of the tags, and the
// tests of the schemas compare.

// tagged returns the wire of a record that is described by its tags. check rejects a record that was read, or completes it; nil
// accepts every record.
func tagged[T any](check func(*T) error) wire[T] {
	type bound struct {
		record *T
		object
	}
	// The functions of the fields belong to one record, which is reused: reflection for each record would be slower.
	pool := sync.Pool{New: func() any {
		record := new(T)
		return &bound{record, bind(reflect.ValueOf(record).Elem())}
	}}
	return wire[T]{
		depth: MaxDepth,
		read: func(c *cursor, v *T) error {
			b := pool.Get().(*bound)
			r := memberReader{c: c, fields: b.fields}
			err := c.record(r.read)
			*v = *b.record
			*b.record = *new(T)
			pool.Put(b)
			if err != nil || check == nil {
				return err
			}
			return check(v)
		},
		write: func(w *writer, v T) {
			b := pool.Get().(*bound)
			*b.record = v
			w.object(b.object)
			*b.record = *new(T)
			pool.Put(b)
		},
	}
}

// object is the fields of a struct.
type object struct {
	fields []field
	raws   []*Raw // the values of fields
}

// field is how a field of one record is read and written.
type field struct {
	name  string
	key   string // the name as it is written after another member
	read  func(*cursor) error
	write func(*writer)
	zero  func() bool
	omit  func() bool // reports whether the field is left out; nil if it never is
}

func bind(v reflect.Value) (o object) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, option, _ := strings.Cut(tag.Get("json"), ",")
		f := bindField(v.Field(i), tag)
		f.name, f.key = name, `,"`+name+`":`
		if option != "" {
			f.omit = f.zero
		}
		if other := tag.Get("with"); other != "" {
			f.omit = bindField(v.FieldByName(other), "").zero
		}
		if other := tag.Get("without"); other != "" {
			zero := bindField(v.FieldByName(other), "").zero
			f.omit = func() bool { return !zero() }
		}
		if raw, ok := v.Field(i).Addr().Interface().(*Raw); ok {
			o.raws = append(o.raws, raw)
		}
		o.fields = append(o.fields, f)
	}
	return o
}

func bindField(v reflect.Value, tag reflect.StructTag) (f field) {
	if v.Kind() == reflect.String {
		v = v.Addr().Convert(reflect.TypeFor[*string]()).Elem()
	}
	as := tag.Get("as")
	switch p := v.Addr().Interface().(type) {
	case *string:
		f.read = func(c *cursor) (err error) { *p, err = c.word(); return err }
		f.write = func(w *writer) {
			if len(*p) > largest {
				w.grow(len(*p))
			}
			w.b = appendText(w.b, *p)
		}
		f.zero = func() bool { return *p == "" }
	case **string:
		f.read = func(c *cursor) (err error) { *p, err = c.text(); return err }
		f.write = func(w *writer) {
			if *p == nil {
				w.b = append(w.b, "null"...)
			} else {
				w.b = appendText(w.b, **p)
			}
		}
	case *bool:
		f.read = func(c *cursor) (err error) { *p, err = c.boolean(); return err }
		f.write = func(w *writer) { w.b = strconv.AppendBool(w.b, *p) }
		f.zero = func() bool { return !*p }
	case *int64:
		f.read = func(c *cursor) (err error) { *p, err = c.integer(64); return err }
		f.write = func(w *writer) { w.b = strconv.AppendInt(w.b, *p, 10) }
		f.zero = func() bool { return *p == 0 }
		switch as {
		case "int32":
			f.read = func(c *cursor) (err error) { *p, err = c.integer(32); return err }
		case "time":
			f.read = func(c *cursor) (err error) { *p, err = c.instant(); return err }
			f.write = func(w *writer) { w.b = appendText(w.b, Timestamp(time.UnixMilli(*p))) }
		}
	case *float64:
		f.read = func(c *cursor) error {
			d, err := c.double()
			if d == nil {
				d = new(float64)
			}
			*p = *d
			return err
		}
		f.write = func(w *writer) { w.b = appendDouble(w.b, *p) }
	case **float64:
		f.read = func(c *cursor) (err error) { *p, err = c.double(); return err }
		f.write = func(w *writer) {
			if *p == nil {
				w.b = append(w.b, "null"...)
			} else {
				w.b = appendDouble(w.b, **p)
			}
		}
	case *Raw:
		null := cmp.Or(tag.Get("nil"), "null")
		f.read = func(c *cursor) (err error) { *p, err = c.value(); return err }
		f.write = func(w *writer) {
			if *p == nil {
				w.b = append(w.b, null...)
			} else {
				w.b = append(w.b, *p...)
			}
		}
		f.zero = func() bool { return *p == nil }
		switch as {
		case "object":
			f.read = func(c *cursor) (err error) { *p, err = c.document(); return err }
		case "list":
			f.read = func(c *cursor) (err error) { *p, err = c.list(); return err }
		}
	default:
		if v.Kind() == reflect.Struct {
			f.bindObject(v, as == "merged")
		} else {
			f.bindList(v, strings.HasSuffix(tag.Get("json"), ",omitempty"))
		}
	}
	return f
}

// checked is an object with a rule of its own.
type checked interface{ check() error }

// bindObject is bindField for a struct. Null is an object without members.
func (f *field) bindObject(v reflect.Value, merged bool) {
	o := bind(v)
	rule, _ := v.Addr().Interface().(checked)
	f.read = func(c *cursor) error {
		if !merged {
			v.SetZero()
		}
		if c.dec.PeekKind() == 'n' {
			return c.skip()
		}
		r := memberReader{c: c, fields: o.fields}
		if err := c.object(r.read); err != nil || rule == nil {
			return err
		}
		return rule.check()
	}
	f.write = func(w *writer) { w.object(o) }
}

// bindList is bindField for a slice. Objects in it that are null are left out. An empty list is nil if it is left out, too.
func (f *field) bindList(v reflect.Value, omitEmpty bool) {
	element := reflect.New(v.Type().Elem()).Elem()
	item := bindField(element, "")
	f.read = func(c *cursor) error {
		v.SetZero()
		null, err := c.array(func() error {
			if element.Kind() == reflect.Struct && c.dec.PeekKind() == 'n' {
				return c.skip()
			}
			err := item.read(c)
			n := v.Len()
			if n == v.Cap() {
				v.Grow(2)
			}
			v.SetLen(n + 1)
			v.Index(n).Set(element)
			return err
		}, nil)
		if v.IsNil() && !null && !omitEmpty {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		return err
	}
	f.write = func(w *writer) {
		w.b = append(w.b, '[')
		for i := range v.Len() {
			w.next()
			element.Set(v.Index(i))
			item.write(w)
		}
		w.b = append(w.b, ']')
	}
	f.zero = func() bool { return v.Len() == 0 }
}

// memberReader reads the members of an object. It expects them in the order in which they are written.
type memberReader struct {
	c      *cursor
	fields []field
	next   int
}

func (r *memberReader) read(name []byte) error {
	for range r.fields {
		if r.next == len(r.fields) {
			r.next = 0
		}
		f := &r.fields[r.next]
		r.next++
		if f.name == string(name) {
			return f.read(r.c)
		}
	}
	return r.c.skip()
}

func (w *writer) object(o object) {
	size := 0
	for _, raw := range o.raws {
		size += len(*raw)
	}
	w.grow(size)
	start := len(w.b)
	for i := range o.fields {
		f := &o.fields[i]
		if f.omit == nil || !f.omit() {
			w.b = append(w.b, f.key...)
			f.write(w)
		}
	}
	if len(w.b) == start {
		w.b = append(w.b, '{')
	}
	w.b[start] = '{' // it was the first comma
	w.close()
}
