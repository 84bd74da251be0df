package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// print writes value as JSON, or calls text to write it for people.
func (o *operator) print(value any, text func(*columns)) error {
	if o.json {
		// Texts of models and tools may repeat members, or not be UTF-8.
		raw, err := json.Marshal(value, jsontext.WithIndent("  "), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return err
		}
		_, err = io.WriteString(o.out, printable(raw)+"\n")
		return err
	}
	t := &columns{w: tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0), now: o.now()}
	text(t)
	return t.w.Flush()
}

// columns writes aligned columns.
type columns struct {
	w   *tabwriter.Writer
	now time.Time
}

// line writes a line. Control characters in cells are replaced: keys and names come from records.
func (t *columns) line(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = cell(c)
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(texts, "\t")) // Flush returns its error
}

func cell(c any) string {
	text := clean(fmt.Sprint(c))
	if text == "" {
		return "-"
	}
	return text
}

// clean makes a text printable on one line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// printable escapes what terminals do not print as it is: JSON has C1 control characters and those that change the direction of text
// verbatim. The value stays the same, except where it is not UTF-8.
func printable(value []byte) string {
	var b strings.Builder
	for _, r := range string(value) {
		switch {
		case r == '\n' || unicode.IsPrint(r) && r != utf8.RuneError:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// cleanLines is clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

// oneLine is the text of an error on one line.
func oneLine(err error) string {
	return clean(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " "))
}

// at writes a time of the JSON format as absolute and relative to now.
func (t *columns) at(iso string) string {
	when, err := time.Parse(time.RFC3339Nano, iso)
	if err != nil {
		return "-"
	}
	absolute := when.UTC().Format("2006-01-02 15:04:05Z")
	switch d := t.now.Sub(when); {
	case d < 0:
		return fmt.Sprintf("%s (in %s)", absolute, rounded(-d))
	default:
		return fmt.Sprintf("%s (%s ago)", absolute, rounded(d))
	}
}

// compareTimes orders times of the JSON format.
func compareTimes(a, b string) int {
	first, _ := time.Parse(time.RFC3339Nano, a) // one that is missing is the first
	second, _ := time.Parse(time.RFC3339Nano, b)
	return first.Compare(second)
}

// rounded writes a duration with one unit.
func rounded(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}
