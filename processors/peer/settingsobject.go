package peer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// settingsObject is an settingsObject of the file, whose members are read by name. A member that is null is absent.
type settingsObject struct {
	p       *parser
	path    string
	members []member
}

type member struct {
	name  string
	value jsontext.Value
}

func (o *settingsObject) fail(name, text string) { o.p.fail(o.path+"."+name, text) }

// known rejects members with other names. A name may be a token at the wrong place, so the error does not have it.
func (o *settingsObject) known(names ...string) {
	for i, m := range o.members {
		if !slices.Contains(names, m.name) {
			o.p.fail(o.path, fmt.Sprintf("member %d is unknown; want %s", i+1, strings.Join(names, ", ")))
		}
	}
}

// value returns the value of a member, or nil.
func (o *settingsObject) value(name string) jsontext.Value {
	for _, m := range o.members {
		if m.name == name && m.value.Kind() != 'n' {
			return m.value
		}
	}
	return nil
}

// set gives a member another value: that of the environment.
func (o *settingsObject) set(name, text string) {
	quoted, _ := jsontext.AppendQuote(nil, text)
	o.members = slices.DeleteFunc(slices.Clone(o.members), func(m member) bool { return m.name == name })
	o.members = append(o.members, member{name: name, value: quoted})
}

// text reads a text, trimmed; empty if it is absent.
func (o *settingsObject) text(name string) string {
	v := o.value(name)
	if v == nil {
		return ""
	}
	text, ok := trimmedText(v)
	if !ok {
		o.fail(name, "want a text")
	}
	return strings.TrimSpace(text)
}

func trimmedText(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, v)
	return string(text), err == nil
}

// name reads an ID, a label or a name.
func (o *settingsObject) name(name string) string {
	text := o.text(name)
	if bad := badName(text); bad != "" {
		o.fail(name, bad)
	}
	return text
}

func badName(text string) string {
	if len(text) > maxName {
		return fmt.Sprintf("longer than %d bytes", maxName)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "a character of it is not printable"
	}
	return ""
}

func (o *settingsObject) required(name, text string) string {
	if text == "" {
		o.fail(name, "blank")
	}
	return text
}

// boolean reads a boolean, or a text that is one; false if it is absent.
func (o *settingsObject) boolean(name string) bool {
	v := o.value(name)
	if v == nil {
		return false
	}
	word := string(v)
	if text, ok := trimmedText(v); ok {
		word = strings.ToLower(strings.TrimSpace(text))
	}
	if word != "true" && word != "false" {
		o.fail(name, "want true or false")
	}
	return word == "true"
}

// number reads a number, or a text that is one, truncates it, and cuts it to its bounds. A number below 1 is rejected.
func (o *settingsObject) number(name string, absent, least, most int64) int64 {
	v := o.value(name)
	if v == nil {
		return absent
	}
	word := string(v)
	if text, ok := trimmedText(v); ok {
		word = strings.TrimSpace(text)
	}
	x, err := strconv.ParseFloat(word, 64)
	if v.Kind() != '0' && v.Kind() != '"' || strings.Trim(word, "0123456789+-.eE") != "" || err != nil {
		o.fail(name, "want a number")
		return absent
	}
	if x = math.Trunc(x); x < 1 {
		o.fail(name, fmt.Sprintf("want at least 1; without it, it is %d", absent))
		return absent
	}
	return int64(min(max(x, float64(least)), float64(most)))
}

// duration reads a number of milliseconds.
func (o *settingsObject) duration(name string, absent time.Duration) time.Duration {
	ms := o.number(name, absent.Milliseconds(), MinTimeout.Milliseconds(), MaxTimeout.Milliseconds())
	return time.Duration(ms) * time.Millisecond
}

// elements reads an array. A member that is absent has no elements; null is not an array.
func (o *settingsObject) elements(name, want string) (list []jsontext.Value) {
	i := slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	v := o.members[i].value
	if v.Kind() != '[' {
		o.fail(name, "want an array of "+want)
		return nil
	}
	dec := jsontext.NewDecoder(strings.NewReader(string(v)))
	_, _ = dec.ReadToken() // the file was read as JSON already
	for dec.PeekKind() != ']' {
		element, err := dec.ReadValue()
		if err != nil || len(list) == MaxEntries {
			o.fail(name, fmt.Sprintf("want at most %d %s", MaxEntries, want))
			return nil
		}
		list = append(list, element.Clone())
	}
	return list
}

// entries reads an array of objects.
func (o *settingsObject) entries(name string) (list []*settingsObject) {
	for i, v := range o.elements(name, "objects") {
		entry := &settingsObject{p: o.p, path: fmt.Sprintf("%s.%s[%d]", o.path, name, i)}
		var err error
		if entry.members, err = members(v); err != nil {
			o.p.fail(entry.path, "want an object")
			continue
		}
		list = append(list, entry)
	}
	return list
}

// names reads a list of agent IDs or tools. A list that would allow more than the reader of the file thinks is rejected.
func (o *settingsObject) names(name string) (ids []string) {
	for i, v := range o.elements(name, "texts") {
		element := fmt.Sprintf("%s[%d]", name, i)
		text, ok := trimmedText(v)
		id := strings.TrimSpace(text)
		switch {
		case !ok:
			o.fail(element, "want a text")
		case id == "":
			o.fail(element, "blank")
		case badName(id) != "":
			o.fail(element, badName(id))
		}
		ids = append(ids, id)
	}
	return ids
}
