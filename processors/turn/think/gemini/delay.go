package gemini

import "time"

// delayOf returns how long the details of an error ask to wait; 0 if they do not say. The API has no Retry-After header.
func delayOf(details []map[string]any) time.Duration {
	for _, d := range details {
		if d["@type"] != "type.googleapis.com/google.rpc.RetryInfo" {
			continue
		}
		text, _ := d["retryDelay"].(string)
		if delay, err := time.ParseDuration(text); err == nil && delay > 0 {
			return min(delay, time.Hour)
		}
	}
	return 0
}
