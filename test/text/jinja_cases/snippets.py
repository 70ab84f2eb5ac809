"""Small templates, one feature of the language each, all rendered with the same variables."""

VARIABLES = {
    "n": 7, "x": 2.5, "t": True, "none_value": None, "text": "Hello, World", "uni": "Grüße 🦊 fin",
    "words": ["pear", "Apple", "fig", "apple"], "numbers": [3, 1, 2], "nested": [[1, 2], [3]],
    "mapping": {"b": 1, "a": {"c": [1, 2.0, None, True, "q'\"\n"]}, "items": "shadow", "10": 3},
    "people": [{"name": "Ann", "age": 30, "tags": ["a"]}, {"name": "bob", "age": 25}, {"name": "Cy", "age": 30, "tags": []}],
    "empty": [], "html": "<a href='x'>&\"</a>", "multi": "one\n\ntwo\r\nthree\n", "spaces": "  a b\t\n c  ",
}

EXPRESSIONS = """
1 + 2 * 3 - 4 // 3
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7.5 % 2, -7.5 // 2
7 / 2, 6 / 2, 1 / 3, 2 ** 10, 2 ** -1, 2 ** 3 ** 2, -2 ** 2, 10 ** 15, 1e16, 1e15, 1.0, 123456789.123, 1e-5, 0.0001
1_000 + 1, 1.5e3, 0
"a" ~ 1 ~ none ~ true ~ 1.0 ~ [1, "a"] ~ {"k": (1,)}
"a" "b" 'c' + "d" * 3, 2 * "xy", [1] + [2], [0] * 3, (1, 2) + (3,)
1 < 2 < 3, 1 < 2 > 3, 1 == 1.0, true == 1, "a" < "b", [1, 2] < [1, 3], (1,) == [1], none == none, "a" != "b"
1 in numbers, 9 not in numbers, "ell" in text, "a" in mapping, "z" in mapping, 1 in [true], "x" in empty
not t, not not n, not n == 7, t and 0, 0 or "x", none or empty, n and text, undefined_name or "d", not undefined_name
"yes" if t else "no", "yes" if not t, ("a" if t else "b") ~ "c", 1 if none_value else 2 if 0 else 3
n is defined, nope is defined, nope is undefined, none_value is none, n is not none, text is string, n is number, x is integer
x is float, t is boolean, t is number, t is integer, mapping is mapping, words is sequence, text is sequence, mapping is sequence
words is iterable, n is iterable, mapping.items() is iterable, mapping.items() is sequence, range(3) is sequence, nope is iterable
n is odd, n is even, n is divisibleby 7, n is divisibleby(2), n is eq 7, n is equalto(8), n is gt 3, n is lt 3, n is ge(7), n is ne 1
"abc" is lower, "ABC" is upper, "Abc" is lower, "1" is lower, t is true, t is false, n is true, 3 is in numbers, 3 is in [1]
n is sameas 7, t is sameas true, none is sameas none, range is callable, n is callable, "upper" is filter, "odd" is test
words[0], words[-1], words[9], words[1:3], words[::-1], words[-2:], words[:-1], words[::2], words[5:], words[3:0:-1]
text[0], text[-1], text[7:], text[::-1], text[1:8:2], uni[6], uni[::-1], uni[4:7], text[99:], text[-100:3], "abc"[10]
mapping.a, mapping["a"]["c"][4], mapping.a.c[1], mapping["10"], mapping.zzz, mapping["zzz"], words.zzz, text["zzz"], none_value.a
mapping.items is string, mapping["items"], mapping.keys() | list, mapping.values() | list, mapping.items() | first
mapping.get("a").get("c"), mapping.get("q"), mapping.get("q", 5), {"a": 1}.get("a", 2), {1: 2}.get(1), {1: 2}[true]
text.upper(), text.lower(), text.title(), "hELLO wORLD'S".capitalize(), "hello wORLD's end".title(), uni.upper(), uni.lower()
spaces.strip(), spaces.lstrip(), spaces.rstrip(), "xxaxx".strip("x"), "xyaxy".lstrip("yx"), "abc".rstrip("cb"), "  ".strip()
text.split(", "), text.split(), spaces.split(), spaces.split(none, 1), "a,b,c".split(",", 1), "a,b,c".rsplit(",", 1), ",a,".split(",")
"".split(), "".split(","), "a  b c".rsplit(none, 1), "a\\nb\\r\\nc\\n".splitlines(), "a\\nb".splitlines(true), multi.splitlines()
text.startswith("Hell"), text.endswith("ld"), text.startswith(("x", "H")), text.endswith("x"), text.startswith("")
text.replace("l", "L"), text.replace("l", "L", 1), text.replace("", "-"), text.find("World"), text.find("zz"), uni.find("🦊"), text.rfind("l")
text.count("l"), text.index("W"), "-".join(words), "".join([]), "a-b-c".partition("-"), "a-b-c".rpartition("-"), "abc".partition("x")
"abc".isalpha(), "ab1".isalnum(), "12".isdigit(), " ".isspace(), "AB".isupper(), "ab".islower(), "".isdigit(), "7".zfill(3)
"prefix-x".removeprefix("prefix-"), "x.txt".removesuffix(".txt"), words.index("fig"), words.count("fig"), mapping.copy() == mapping
"{} {}".format(1, "a"), "{0}-{1}-{0}".format("x", 2), "{a:>5}|{b:<5}|{c:^5}|".format(a=1, b=2, c="z"), "{:.2f}".format(x), "{:05d}".format(n), "{:,}".format(1234567), "{{}}".format(), "{!r}".format("q"), "{:.1%}".format(0.256), "{:x}".format(255), "{:>8.3f}".format(x), "{:e}".format(12345.678)
"%.3d|%6.2i|%-5.3d|%#.4x|%u|%+.3d|%05d|%05s" % (7, -1, 3, 255, 9, 4, -3, "ab"), "{!s:5}|{!s:.2}|{!r:>5}|{:>05}|{:05}|{:*>05}|{:<05}|{:=+6}".format(7, 12.5, "q", -3, 7, 7, "ab", 3), "{:05}".format("ab"), "{:3}|{}|{!s:6}|".format(true, true, false), "%+ d|% +d" % (1, 2), "%#.3g|%#.0f|%#.0e" % (1.0, 2.0, 3.0), "{:#.3g}|{:#.0%}".format(1.5, 0.5), "{:e} {:g} {:G}".format(1.5, 1e-9, 1e20), "{:>8}|{:<8}|{:^8}".format(1, 2, "x")
"{:d}".format(2.5)
"{:s}".format(7)
"{:d}".format("a")
"{:.2}".format(7)
"{!z}".format(7)
"%x" % 2.5
"%s is %d" % ("a", 3), "%05.1f|%-5s|%5s|%%" % (2.25, "a", "b"), "%(k)s" % {"k": 1}, "%s" % text, "%r" % "q", "%x" % 255, "%s" % [1], "%i" % 3.9
numbers | sort, words | sort, words | sort(reverse=true), words | sort(case_sensitive=true), people | sort(attribute="age") | map(attribute="name") | list
people | map(attribute="name") | list, people | map(attribute="tags.0", default="-") | list, words | map("upper") | list, words | map("replace", "p", "b") | list
people | selectattr("age", "gt", 26) | map(attribute="name") | join(", "), people | rejectattr("tags") | list | length, people | selectattr("tags", "defined") | list | count
numbers | select("odd") | list, numbers | reject("equalto", 1) | list, [0, 1, "", none, "a"] | select | list, numbers | select("in", [1, 3]) | list
words | join, words | join("-"), people | join(", ", attribute="name"), [1, none, 2.0] | join("|"), "abc" | join(".")
words | length, text | length, mapping | count, empty | length, uni | length, nope | length, range(5) | length
words | first, words | last, empty | first, text | first, text | last, numbers | min, numbers | max, words | min, words | max, empty | max
numbers | sum, people | sum(attribute="age"), numbers | sum(start=10), words | unique | list, words | unique(true) | list, numbers | reverse | list, "abc" | reverse
words | list, "abc" | list, mapping | list, mapping | items | list, mapping.a | items | list, range(3) | list, range(5, 1, -2) | list, range(2, 4)
mapping | dictsort | map("first") | list, {"B": 2, "a": 3, "C": 1} | dictsort, {"b": 2, "a": 3} | dictsort(by="value"), {"B": 2, "a": 3} | dictsort(true), {"b": 2, "a": 3} | dictsort(reverse=true)
text | upper, text | lower, "foo bar-baz (qux)" | title, "it's ok" | title, "fOO bar" | capitalize, spaces | trim, "xxaxx" | trim("x"), n | string | length
text | replace("o", "0"), text | replace("o", "0", 1), n | replace(7, 8), nope | default("d"), none_value | default("d"), none_value | default("d", true), "" | d("e", boolean=true), nope | default
people | groupby("age"), people | groupby("name"), people | groupby("tags.0", default="-"), people | groupby(attribute="zzz", default=0), [] | groupby("a"), mapping | groupby(0)
[{"c": "b"}, {"c": "A"}, {"c": "a"}, {"c": "B"}] | groupby("c"), [{"c": "b"}, {"c": "A"}, {"c": "a"}] | groupby("c", case_sensitive=true), nested | groupby(0), [[1, "x"], [true, "y"], [1.0, "z"]] | groupby(0)
(people | groupby("age") | first).grouper, (people | groupby("age") | last).list | length, (people | groupby("age"))[0]["grouper"], people | groupby("age") | map(attribute="grouper") | list, people | groupby("age") | map(attribute="list") | map("length") | list, (1, 2).grouper is defined
people | groupby("age") | tojson, (people | groupby("age"))[0] == (25, [people[1]]), (people | groupby("age"))[0][:1].grouper is defined
people | groupby
people | groupby("zzz")
nope | groupby("a")
"ab" | center(6) ~ "|", "abc" | center(6) ~ "|", "ab" | center(5) ~ "|", 12 | center(width=5), "x" | center | length, uni | center(20), "abc" | center(-1), none | center(7)
"abc" | center("x")
text | truncate(5), text | truncate(8), text | truncate(7), text | truncate(6), "foo bar baz qux" | truncate(9), "foo bar baz qux" | truncate(11), "foo bar baz qux" | truncate(11, false, "..."), "foo bar baz qux" | truncate(9, true), "foo bar baz qux" | truncate(9, true, "..", 0), "foo bar baz qux" | truncate(9, leeway=0), uni | truncate(6, leeway=0, end="…"), ("y" * 300) | truncate, ("y z" * 100) | truncate | length, [1, 2] | truncate, nope | truncate, "foobarbaz" | truncate(4, leeway=0, end=""), "a  b" | truncate(3, leeway=0, end="")
text | truncate(2)
text | truncate(9, leeway=-1)
12 | truncate
numbers | truncate(2, leeway=0, end="")
"a b/c?d=é&~._-+%" | urlencode, {"a b": "c/d", "e": 1, "f": none, "g": "é "} | urlencode, [("x", "y z"), ["k", true]] | urlencode, 12.5 | urlencode, none | urlencode, nope | urlencode, ["ab", "cd"] | urlencode, {"a": 1, "b": [1]}.items() | urlencode, "" | urlencode, {} | urlencode
["abc"] | urlencode
[1] | urlencode
0 | filesizeformat, 1 | filesizeformat, true | filesizeformat, 999 | filesizeformat, 1000 | filesizeformat, 1023 | filesizeformat(true), 1024 | filesizeformat(true), 1536 | filesizeformat(binary=true), 999999 | filesizeformat, 1000000 | filesizeformat, 1e9 | filesizeformat, 123456789012 | filesizeformat, 1e24 | filesizeformat, 1e27 | filesizeformat, 1e30 | filesizeformat, 1e23 | filesizeformat, 5e24 | filesizeformat(true), 2.7 | filesizeformat, -0.5 | filesizeformat, -1500 | filesizeformat, "2500" | filesizeformat, "inf" | float | filesizeformat, 1.0 | filesizeformat, 1.5 | filesizeformat, (2 ** 60) | filesizeformat(true), 1048575 | filesizeformat(true), 1048576 | filesizeformat(true)
none | filesizeformat
"x" | filesizeformat
nope | filesizeformat
{"class": "a b", "id": n, "off": none, "q": "<'\\">&", "u": nope, "t": true} | xmlattr, {"a": 1} | xmlattr(false), {} | xmlattr ~ "|", {"off": none} | xmlattr ~ "|", {"a": 1, "b": 2} | xmlattr(autospace=false), {"é<": 1} | xmlattr
{"a b": 1} | xmlattr
{"a/": 1} | xmlattr
{"a>": 1} | xmlattr
{1: 2} | xmlattr
[1] | xmlattr
nope | xmlattr
"42" | int, "4.7" | int, "x" | int, "x" | int(5), 3.99 | int, "0x1A" | int(base=16), none_value | int, true | int, " 12 " | int, "1_000" | int
"1e400" | float, "-1e400" | float, "1e-400" | float, "1_0.5_0" | float, "+1.5" | float, "Infinity" | float, 1e400, -1e400, 1e-400
"1__0" | float, "_1" | float, "1_" | float, "1e_5" | float, "+-1" | float, "nan(1)" | float, "0x1p3" | float, "" | float, "." | float, "1__0" | int, "_1" | int, "1_" | int, "0x_1f" | int(base=16), "+-5" | int
"1.5" | float, "x" | float, 3 | float, "x" | float(1.5), "1e3" | float, none_value | float
-5 | abs, (-5) | abs, 2.5 | round, 3.5 | round, 2.675 | round(2), 7 | round, 2.4 | round(method="ceil"), 2.6 | round(0, "floor"), 1234.5 | round(-2)
multi | indent, multi | indent(2, true), multi | indent(width=2, blank=true), "a\\nb" | indent("> "), "one" | indent(3, first=true)
html | escape ~ "", html | e | length, html | safe ~ "", "%s-%s" | format("a", 1), "a b, c" | wordcount, 7 | string, none | string, [1, "a"] | string
mapping | tojson, mapping | tojson(indent=2), [] | tojson, {} | tojson(indent=2), [1, [2, []]] | tojson(indent=4), uni | tojson, uni | tojson(ensure_ascii=true), mapping | tojson(separators=(",", ":")), {"b": 1, "a": 2} | tojson(sort_keys=true)
1.0 | tojson, 1e20 | tojson, none | tojson, true | tojson, "</x>&'" | tojson, (1, 2) | tojson, {1: 2, none: 3, true: 4} | tojson, "\\x00\\x1f\\x7f\\u2028" | tojson
[1, 2, 3, 4, 5] | batch(2) | list, [1, 2, 3] | batch(2, 0) | list, [1, 2, 3, 4, 5] | slice(2) | list, [1, 2, 3] | slice(2, "x") | list
"\\n\\t\\\\\\'\\"\\x41\\u00e9\\q\\101" | tojson, 'it\\'s', "a\\
b"
[1, 2.5, "a'b", 'c"d', "e\\n", none, true, nested, mapping.a, (1,), ()] ~ "", ["é🦊\\x85\\u200b\\xad"]
namespace(a=1).a, namespace({"a": 1}, b=2).b, dict(a=1, b=2), dict({"x": 1}, y=2), dict([("p", 1)])
joiner("|")() ~ "x", [joiner()] | length, (1, 2)[0], {"a": {"b": [10, 20]}}.a.b[1], [[1, 2], [3, 4]][1][0], "abc".upper().lower() | upper
(n | string).zfill(3), n | string ~ "!", -n, +n, - -n, not(n), (n), ((n)), [n,], (n,), {"a": n,}
text is string and n is number or false, n if n is not string else text, nope is not defined and t, text | length > 5, text|length == 12 and not empty
*[1, 2] | list
"a b".rsplit(none, 1), spaces.rsplit(none, 1), spaces.rsplit(none, 0), spaces.rsplit(none, 3), "a b c".rsplit(none, 2), "".rsplit(none, 1), " a".rsplit(none, 0)
mapping | attr("b"), mapping | attr("zzz"), mapping | attr("keys") is callable, namespace(a=1) | attr("a"), words | attr("count") is callable, {"a": 1} == {"a": 1.0}, [1, [2]] == [1, [2]], {"a": 1} != {"b": 1}
people[0].name, people[0]["age"] + 1, people | length - 1, people[people | length - 1].name, (people | first).name, people[-1].tags is defined
"a" in ["a"] and "b" not in ["a"], not "a" in "abc", 1 not in [1] or true, "x" in mapping.a.c, none in [none], none in mapping.a.c
nope.attr
nope + 1
nope["a"]
nope()
-nope
1 / 0
1 // 0
"a" + 1
[1] + (2,)
1 < "a"
none_value < 1
n.foo.bar
words.foo()
text()
n | nofilter
n is notest
{} | tojson(indent=0), [1] | tojson(indent=0)
range(3) | tojson
nope | tojson
[1] in {}
{[1]: 2}
people | sort(attribute="age,name") | map(attribute="name") | list, people | sort(attribute="age,name", reverse=true) | map(attribute="name") | list, people | sort(attribute="zzz") | map(attribute="name") | list, [{"a": 1, "b": "y"}, {"a": 1, "b": "X"}, {"a": 0, "b": "z"}] | sort(attribute="a,b") | map(attribute="b") | list, nested | sort(attribute="0") | list
people | sort(attribute="tags")
words | sort(attribute="x.y")
[1, "a"] | sort
none_value[1:], 1
mapping.update({"a": 1})
mapping.pop("a") if false else "kept"
"abc".index("x")
"{} {}".format(1)
"%d" % "a"
"a" "b" c
1 +
(1, 2
[1, 2}
"open
a b
x is
range(1000000)
n | int(
raise_exception("stop")
9223372036854775807 + 1 if false else 9223372036854775807
1 ~ 2 + 3
"a" if nope.attr else "b"
loop is defined, caller is defined, varargs is defined
t | abs, false | abs, t | round, t | round(1), +t, + false, -t, +n, +x, [+t, t | abs]
4.0 is even, 3.0 is odd, 3.5 is odd, 3.5 is even, -3 is odd, -3.0 is odd, t is odd
words | map("upper") | reverse | length, numbers | reverse | first, [1, 2] | reverse | list | length
"ab".ljust(4) ~ "|", "ab".rjust(4, "é"), "ab".center(5, "*"), "abc".center(6, "*"), "abc".ljust(2), "".center(3, "-"), uni.rjust(14, ".")
"Straße ǅ Ab1".swapcase(), "STRASSE ß".casefold(), "ﬁx ÀÉ".casefold(), "ab".isascii(), uni.isascii(), "".isascii()
uni.find("i", 2), uni.find("f", 0, 3), uni.rfind("n", 0, -1), uni.rindex("ü"), uni.index("f", -3), "aaa".count("a", 1), "aaa".count("", 1, 2), "a".find("", 2), "abcabc".rfind("c", 0, 5)
text.startswith("W", 7), text.startswith("W", 7, 8), text.startswith(("x", "e"), 1), text.endswith("o", 0, 5), text.endswith("", 99), "".startswith("")
mapping.keys(), mapping.values() | string, {"a": 1}.items() ~ "", [{}.keys()]
"a" % [1], "a" % nope, 0 ** 2.0, (-2) ** 3.0
+text
+nope
+none_value
"a" is odd
[1] is even
none_value < 2.5
2.5 < "a"
[1] > 0.5
text.startswith(["H"])
"ab".rjust(4, "xy")
"ab".center(4, "")
"a".rindex("z")
0.0 ** -1
n[1:]
none_value[1:]
none | length
none | selectattr("x") | list, none | map("upper") | list, 0 | select | list
5 | length
true | string, (true, false), True, False, None, none
""".strip("\n")

STATEMENTS = [
    "a\n{% if t %}\nb\n{% endif %}\nc\n",
    "a\n  {% if t %}\n  b\n  {% else %}\n  x\n  {% endif %}\nc\n\n",
    "  {%+ if t %}\n b {%- endif %}  c  {%+ if t -%}  d  {% endif +%}\n e",
    "a {{- n -}} b {{ n }}\n{{ n }}\n\n{{- n }}",
    "a {# comment #} b\n  {# line #}\nc {#- strip -#} d {#+ keep +#}\n e\n{# a {{ x }} {% if %} #}\nf",
    "{% raw %}{{ n }} {% if %} {# x #}{% endraw %}|{%- raw -%}  a  {%- endraw -%}  b\n  {% raw %}\n x\n  {% endraw %}\ny",
    "x\r\ny\r{% if t %}\r\nz{% endif %}\n",
    "\n\n{{ n }}\n\n", "", "\n", "plain", "{ % } {{ '}}' }} {{ '%}' }} {% if '%}' %}y{% endif %} { { #",
    "{{ {'a': {'b': 1}}['a']['b'] }}{{ {'a': {}} }}{{{}}}",
    "{% for i in numbers %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for i in empty %}x{% else %}none{% endfor %}{% for i in nope %}x{% else %}none{% endfor %}",
    "{% for i in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in numbers %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for i in [1, 1, 2, 2, 1] %}{{ loop.changed(i) }} {% endfor %}",
    "{% for k, v in mapping.items() %}{{ k }}={{ v }};{% endfor %}{% for k in mapping %}{{ k }}{% endfor %}{% for (a, b) in [(1, 2), [3, 4]] %}{{ a + b }}{% endfor %}",
    "{% for i in range(10) if i is odd %}{{ i }}/{{ loop.length }} {% else %}no{% endfor %}{% for c in text %}{{ c }}.{% endfor %}",
    "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1, 2] %}{% break %}{% else %}E{% endfor %}{% for i in [1, 2] %}{% continue %}{% else %}F{% endfor %}{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}G{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }} {% endfor %}{{ loop.index }}{% endfor %}",
    "{% for i in [[1, [2, [3]]], 4] recursive %}{% if i is iterable %}[{{ loop(i) }}]{% else %}{{ i }}@{{ loop.depth }}{% endif %}{% endfor %}",
    "{% set v = 1 %}{% for i in [1, 2] %}{{ v }}{% set v = 5 %}{{ v }}{% endfor %}{{ v }}",
    "{% if t %}{% set v = 2 %}{% endif %}{{ v }}{% set v = v + 1 %}{{ v }}",
    "{% set ns = namespace(found=false, list=[]) %}{% for i in numbers %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% set ns.list = ns.list + [i] %}{% endfor %}{{ ns.found }}{{ ns.list }}{{ ns.other }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set e = 1, %}{{ e }}",
    "{% set block %}  some {{ n }}\n text{% endset %}[{{ block }}]{{ block | length }}{% set up | upper | trim %} x {% endset %}[{{ up }}]",
    "{% set ns = namespace() %}{% set ns.text %}inside{% endset %}{{ ns.text }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='y') }}{{ m(b=5, a=6) }}{{ m() }}{{ m.name }}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m(1) }}",
    "{% macro m(a, b=a ~ '!') %}{{ a }}{{ b }}{% endmacro %}{{ m('x') }}{% set v = 1 %}{% macro g() %}{{ v }}{% endmacro %}{{ g() }}{% set v = 2 %}{{ g() }}",
    "{% macro fact(i) %}{% if i <= 1 %}1{% else %}{{ i * fact(i - 1) | int }}{% endif %}{% endmacro %}{{ fact(10) }}",
    "{% macro m(x) %}{% set v = x %}{{ v }}{% endmacro %}{{ m(1) }}{{ v }}{% macro d() %}\n  a\n{% endmacro %}[{{ d() }}][{{ d() | trim }}]",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in {{ n }}{% endcall %}{% macro l(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) l(numbers) %}{{ i }}:{{ x }} {% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% filter upper | replace('A', 'b') %}a {{ text }}{% endfilter %}{% filter indent(2) %}a\nb{% endfilter %}",
    "{% for group in people | groupby('age') %}{{ group.grouper }}:{{ group.list | map(attribute='name') | join(',') }};{% endfor %}{% for age, ones in people | groupby('age') %}{{ age }}{{ ones | length }} {% endfor %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 3 %}{{ a }}{% endwith %}{{ a }}{% with %}{% set q = 1 %}{% endwith %}{{ q }}",
    "{% generation %}gen {{ n }}{% set inner = 1 %}{% endgeneration %}{{ inner }}",
    "{% if nope %}a{% elif n == 7 %}b{% else %}c{% endif %}{% if empty %}a{% elif none_value %}b{% endif %}{% if mapping and words and text and x %}d{% endif %}",
    "{% if words | select('equalto', 'zz') %}generators are true{% endif %}{% if words | select('equalto', 'zz') | list %}x{% endif %}",
    "{% set g = words | map('upper') %}{{ g | list }}{{ g | list }}{% set l = words | map('upper') | list %}{{ l }}{{ l }}",
    "{% set l = [] %}{% for i in numbers %}{% set _ = l.append(i * 2) %}{% endfor %}{{ l }}{{ l.pop(0) }}{{ l }}{{ l.pop() }}{% set _ = l.extend([7, 8]) %}{% set _ = l.insert(1, 'z') %}{{ l }}",
    "{{ loop }}{% for i in [1] %}{% set ns = namespace(l=loop) %}{{ ns.l.index }}{% endfor %}",
    "{{ 1, 2 }}{{ words[0], n }}{{ () }}", "{{ n if t }}{{ n if not t }}|",
    "{% for m in people %}{% set tags = m.tags | default(['-']) %}{{ m.name }}{{ tags }}{% endfor %}{{ tags }}",
    "{% macro a() %}{% macro b() %}inner{% endmacro %}{{ b() }}{% endmacro %}{{ a() }}",
    "{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}",
    "{{ strftime_now('%Y-%m-%d') is string }}",
    "{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ documents }}{{ add_generation_prompt }}{{ messages | length }}",
    "{% if t %}", "{% endif %}", "{% for i in numbers %}", "{{ n", "{% nonsense %}", "{# open", "{% raw %} x", "{{ n }} }} {% else %}",
    "{% for i numbers %}{% endfor %}", "{% set 1 = 2 %}", "{% set x.y = 2 %}", "{% set nope.y = 2 %}", "{% break %}", "{% for a, b in [1] %}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% call n %}{% endcall %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% if %}{% endif %}", "{{ }}", "{% set %}",
    "{% set true = 1 %}", "{% for i in n %}{% endfor %}", "{{ messages | tojson }}", "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}",
    "{% do words.append(1) %}", "{{ n;n }}", "{{ ? }}", "{{ 'a' is string is true }}", "{{ m(a=1, 2) }}", "{{ words. }}",
]


def snippets():
    for line in EXPRESSIONS.replace("\\\n", "\\\\\n").split("\n"):
        yield line if line.startswith("{") and "{%" in line else "{{ " + line + " }}"
    yield from STATEMENTS
