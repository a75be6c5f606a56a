package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// number is a whole number from low to high.
func number[T int | uint32](low, high int64) kind[T] {
	return kind[T]{
		want:   fmt.Sprintf("a whole number from %d to %d", low, high),
		schema: map[string]any{"type": "integer", "minimum": low, "maximum": high},
		read: func(text, tag string) (T, error) {
			n, err := whole(text, tag)
			if err == nil && (n < low || n > high) {
				err = errWanted
			}
			return T(n), err
		},
	}
}

// whole reads a number of base 10. YAML 1.1 reads 010 as eight; nobody means that here.
func whole(text, tag string) (int64, error) {
	if tag != "!!int" {
		return 0, errWanted
	}
	text = strings.ReplaceAll(text, "_", "")
	if digits := strings.TrimLeft(text, "+-"); len(digits) > 1 && digits[0] == '0' {
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			return 0, errWanted
		}
		if strings.Trim(digits, "0123456789") != "" {
			return 0, fmt.Errorf("is %s, want base 10; write %d", text, n)
		}
		meant, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, errWanted
		}
		if n == meant {
			return 0, fmt.Errorf("is %s; write %d", text, meant)
		}
		return 0, fmt.Errorf("is %s, which YAML reads as %d; write %d", text, n, meant)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, errWanted
	}
	return n, nil
}

// fraction is a number from low to high.
func fraction(low, high float64) kind[float64] {
	return kind[float64]{
		want:   fmt.Sprintf("a number from %v to %v", low, high),
		schema: map[string]any{"type": "number", "minimum": low, "maximum": high},
		read: func(text, tag string) (float64, error) {
			var f float64
			n, err := whole(text, tag)
			switch tag {
			case "!!int":
				f = float64(n)
			case "!!float":
				f, err = strconv.ParseFloat(text, 64)
				if err != nil {
					err = errWanted
				}
			}
			if err == nil && !(f >= low && f <= high) {
				err = errWanted
			}
			return f, err
		},
	}
}

// duration is a number of seconds, or text such as 1m30s.
func duration(low, high time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		want: fmt.Sprintf("seconds, or a duration such as 90s or 1h30m, from %s to %s", shortDuration(low), shortDuration(high)),
		schema: map[string]any{"anyOf": []any{
			map[string]any{"type": "number", "minimum": low.Seconds(), "maximum": high.Seconds()},
			map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`},
		}},
		read: func(text, tag string) (time.Duration, error) {
			d, err := readDuration(text, tag)
			if err == nil && (d < low || d > high) {
				err = errWanted
			}
			return d, err
		},
	}
}

func readDuration(text, tag string) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Second)
	switch tag {
	case "!!int":
		n, err := whole(text, tag)
		if err == nil && (n > most || n < 0) {
			err = errWanted
		}
		return time.Duration(n) * time.Second, err
	case "!!float":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f < float64(most)) {
			return 0, errWanted
		}
		return time.Duration(f * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errWanted
	}
	return d, nil
}

// shortDuration leaves out the zeros that Duration.String ends with: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// units are those of sizes, the decimal and the binary ones.
var units = map[string]float64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

// size is bytes, or text such as 512MB or 1GiB.
func size(low int64) kind[int64] {
	return kind[int64]{
		want: fmt.Sprintf("bytes, or a size such as 512MB or 2GiB, of at least %dMB", low/1e6),
		schema: map[string]any{"anyOf": []any{
			map[string]any{"type": "integer", "minimum": low},
			map[string]any{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)? ?([KMGTkmgt][Ii]?[Bb]|[Bb])$`},
		}},
		read: func(text, tag string) (int64, error) {
			n, err := whole(text, tag)
			if tag != "!!int" {
				n, err = readSize(text)
			}
			if err == nil && n < low {
				err = errWanted
			}
			return n, err
		},
	}
}

func readSize(text string) (int64, error) {
	at := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if at <= 0 {
		return 0, errWanted
	}
	unit, ok := units[strings.ToUpper(strings.TrimSpace(text[at:]))]
	f, err := strconv.ParseFloat(text[:at], 64)
	if !ok || err != nil || f*unit >= math.MaxInt64 {
		return 0, errWanted
	}
	return int64(f * unit), nil
}
