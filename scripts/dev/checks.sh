#!/usr/bin/env bash
# Part of ./dev: formatting, lint, fuzzing and coverage.
# shellcheck disable=SC2154,SC2034  # lists of install.sh; run_tests reads test_presets

cpp_files() { find src tests bench -name '*.h' -o -name '*.cpp' | sort; }

format() {
  install_packages "${lint_packages[@]}"
  cpp_files | xargs clang-format -i
}

# What takes two seconds to check. Uses clang-format where it is there.
precommit() {
  local failed=0 files
  if command -v clang-format >/dev/null; then
    mapfile -t files < <(git diff --name-only --diff-filter=d HEAD -- '*.h' '*.cpp')
    ((${#files[@]} == 0)) || clang-format --dry-run -Werror "${files[@]}" || failed=1
  fi
  python3 scripts/check_layers.py src || failed=1
  python3 scripts/check_tree.py || failed=1
  ((failed == 0)) || die "not ready to commit; './dev format' repairs what is formatting"
}

# C++ files of the last 12 hours of commits, those of the newest commits first. libtorch's headers do
# not pass clang 14.
changed_files() {
  local since
  since=$(date --iso-8601=seconds -d "@$(($(git log -1 --format=%ct) - 43200))")
  git log --since="$since" --format= --name-only --diff-filter=AMR -M \
    -- 'src/*.cpp' 'tests/*.cpp' 'bench/*.cpp' | awk '!seen[$0]++' |
    while read -r file; do
      if [[ -f $file && $file != src/runtime/torch/* ]]; then echo "$file"; fi
    done
}

tidy_changed() {
  local files most=12
  mapfile -t files < <(changed_files)
  say "clang-tidy on ${#files[@]} changed files$( ((${#files[@]} <= most)) || echo ", the first $most")"
  ((${#files[@]})) || return 0
  configure tidy
  compile tidy plait_version embedded
  printf '%s\n' "${files[@]:0:most}" |
    xargs -P "$(nproc)" -n 1 timeout 240 clang-tidy --quiet -p build/tidy \
      --extra-arg=-Wno-unknown-warning-option --warnings-as-errors='*'
}

lint() {
  local failed=0 changed=0
  case ${1:-} in
    '') ;;
    --changed) changed=1 ;;
    *) die "unknown option '$1'; usage: ./dev lint [--changed]" ;;
  esac
  setup_tests
  install_packages "${lint_packages[@]}"
  say "clang-format"
  cpp_files | xargs clang-format --dry-run -Werror || failed=1
  say "layers, names and paths"
  python3 scripts/check_layers.py src || failed=1
  python3 scripts/check_tree.py || failed=1
  if command -v shellcheck >/dev/null; then
    say "shellcheck"
    shellcheck -x dev .ci/run scripts/*.sh || failed=1
  fi
  if ((changed)); then
    tidy_changed || say "clang-tidy found something in changed files; './dev lint' fails on it"
  else
    say "clang-tidy"
    compile tidy
  fi
  ((failed == 0)) || die "lint found something; './dev format' repairs what is formatting"
}

# Every reader with bytes that nobody has written, from the corpora of tests/fuzz.
fuzz() {
  local seconds=${1:-60} only=${2:-} corpus reader failed=()
  [[ $seconds =~ ^[0-9]+$ ]] || die "'$seconds' is not a number of seconds; usage: ./dev fuzz [SECONDS [READER]]"
  setup
  install_packages "${fuzz_packages[@]}"
  at_once=1 compile fuzz plait_fuzz
  mkdir -p build/fuzz/found
  for corpus in tests/fuzz/corpus/*; do
    reader=${corpus##*/}
    [[ -z $only || $only == "$reader" ]] || continue
    mkdir -p "build/fuzz/corpus/$reader"
    say "fuzzing $reader for $seconds s"
    PLAIT_FUZZ_READER=$reader build/fuzz/plait_fuzz -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 \
      -print_final_stats=1 -artifact_prefix="build/fuzz/found/$reader-" \
      "build/fuzz/corpus/$reader" "$corpus" 2>"build/fuzz/$reader.log" ||
      failed+=("$reader")
    awk '/^stat::number_of_executed_units/ { runs = $2 } /^stat::slowest_unit/ { slowest = $2 }
      /^stat::peak_rss/ { most = $2 }
      END { print "    " runs " inputs, the slowest in " slowest " s, at most " most " MiB" }' \
      "build/fuzz/$reader.log" >&2
  done
  ((${#failed[@]} == 0)) ||
    die "something was found: ${failed[*]}" "logs are build/fuzz/READER.log, inputs build/fuzz/found"
}

coverage() {
  local test_presets=(coverage)
  setup_tests
  install_packages "${coverage_packages[@]}"
  compile coverage
  say "running the tests"
  run_tests -LE slow || say "some tests failed; the report counts what they ran"
  mkdir -p build/coverage/html
  gcovr --root . --filter 'src/' --exclude '.*_test\.cpp' --html-details build/coverage/html/index.html \
    --print-summary build/coverage
  say "done: build/coverage/html/index.html"
}

golden() {
  local test_presets=(release)
  setup_tests
  compile release
  PLAIT_UPDATE_GOLDEN=1 run_tests --verbose -R '[Gg]olden|^docs$|^bad_input$|^quality$|^python$'
  say "rewritten; now review: git diff tests README.md docs"
}
