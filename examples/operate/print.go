package main

import (
	"bufio"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

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
		_, err = o.out.Write(append(raw, '\n'))
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

// confirm asks before something that cannot be undone.
func (o *operator) confirm(yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	_, _ = fmt.Fprintf(o.errs, format+" Type yes to continue: ", args...)
	line, _ := bufio.NewReader(o.in).ReadString('\n')
	if strings.TrimSpace(line) != "yes" {
		return fmt.Errorf("not confirmed, nothing was changed: type yes, or give --yes")
	}
	return nil
}
