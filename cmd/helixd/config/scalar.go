package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

var (
	secretType   = reflect.TypeFor[Secret]()
	durationType = reflect.TypeFor[time.Duration]()
	bytesType    = reflect.TypeFor[Bytes]()
	stringsType  = reflect.TypeFor[[]string]()
)

// isScalar reports whether a key of the type has one value, and no parts.
func isScalar(t reflect.Type) bool {
	if t == secretType || t == durationType || t == bytesType {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Float64:
		return true
	}
	return false
}

// wanted says what a scalar must be.
func wanted(t reflect.Type) string {
	switch t {
	case durationType:
		return "must be a duration such as 30s"
	case bytesType:
		return "must be an amount of bytes such as 512MiB"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int:
		return "must be an integer"
	case reflect.Float64:
		return "must be a number"
	}
	return "must be a string"
}

// setText sets a scalar, or a list of strings, from text and reports whether the
// text fits.
func setText(v reflect.Value, text string) bool {
	if v.Type() == stringsType {
		var items []string
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				items = append(items, item)
			}
		}
		v.Set(reflect.ValueOf(items))
		return true
	}
	if v.Type() == secretType {
		v.Set(reflect.ValueOf(NewSecret(text)))
		return true
	}
	if v.Type() == durationType {
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return err == nil
	}
	if v.Type() == bytesType {
		b, ok := ParseBytes(text)
		v.SetInt(int64(b))
		return ok
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return true
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err == nil
	case reflect.Int:
		i, err := strconv.Atoi(text)
		v.SetInt(int64(i))
		return err == nil
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f)
		return err == nil
	}
	panic("config: not a scalar: " + v.Type().String())
}

// accepts reports whether YAML of the kind may set a scalar of the type.
func accepts(t reflect.Type, k kind) bool {
	switch {
	case t == durationType: // a number, since 0 needs no unit
		return k == kindString || k == kindNumber
	case t == bytesType:
		return k == kindString || k == kindNumber
	case t.Kind() == reflect.Bool:
		return k == kindBool
	case t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return k == kindNumber
	}
	return k == kindString
}
