#include "io/shell/shell_script.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "io/shell/script_tokens.h"

namespace plait {
namespace {

// The commands, one a line, their words between bars.
std::string commands(const std::string& text, const IncludedFile& included = {}) {
  std::string out;
  for (const auto& command : commands_of(text, included).commands)
    out += fmt::format("{}\n", fmt::join(command.words, "|"));
  return out;
}

TEST(ShellScript, FillsInWhatTheScriptSets) {
  EXPECT_EQ(commands("TP=2; PP=${PP:-4}\nrun --tp $TP --pp=${PP} ${CP-1} ${EP:=8} $EP\n"),
            "run|--tp|2|--pp=4|1|8|8\n");
  EXPECT_EQ(commands("export A=1 B='x y'\nrun $A $B \"$B\" '$B' \\$B\n"), "run|1|x|y|x y|$B|$B\n");
  EXPECT_EQ(commands("O=\" \\\n  --a 1 \\\n  --b 2\"\nO=\"$O --c\"\nrun $O \\\n  --d # no --e\n"),
            "run|--a|1|--b|2|--c|--d\n");
}

TEST(ShellScript, KnowsArrays) {
  EXPECT_EQ(commands("A=(\n  --a 1 # one\n  \"x y\"\n)\nA+=(--b)\nrun \"${A[@]}\" ${#A[@]} ${A[1]} "
                     "\"${B[@]}\" \"$@\"\n"),
            "run|--a|1|x y|--b|4|1|${B[@]}\n");
  EXPECT_EQ(commands("A=(1 2)\nA=(\"${A[@]}\" 3)\nrun ${A[*]}\n"), "run|1|2|3\n");
}

TEST(ShellScript, Calculates) {
  EXPECT_EQ(
      commands("G=8; N=4\nW=$((G * N))\nrun $W $(( ($W + 1) / 2 )) $(($W%5)) $((N > 3 ? 7 : 9))\n"),
      "run|32|16|2|7\n");
  EXPECT_EQ(commands("((X = 2))\n((X += 3)); let Y=X*2\nrun $X $Y $((1/0)) $((Z+1))\n"),
            "run|5|10|$((1/0)..)|$((Z+1)..)\n");
}

TEST(ShellScript, TakesTheBranchThatItsVariablesSay) {
  EXPECT_EQ(commands("S=13\nif [[ $S == 7 ]]; then H=4096\nelif [ \"$S\" = 13 ]; then H=5120\nelse "
                     "H=1; fi\nrun $H\n"),
            "run|5120\n");
  EXPECT_EQ(commands("S=7b\ncase $S in\n  7b|8b) T=2 ;;\n  *) T=8 ;;\nesac\nrun $T\n"), "run|2\n");
  EXPECT_EQ(
      commands(
          "[ -z \"$A\" ] && A=1\n[[ -n $B && $A -gt 0 ]] || B=2\nfalse || C=3\nrun $A $B $C\n"),
      "run|1|2|3\n");
  EXPECT_EQ(
      commands("if [[ gpt-7b == gpt-* ]]; then run a; fi\nif ! [ 3 -lt 2 ]; then run b; fi\n"),
      "run|a\nrun|b\n");
}

// 'nvidia-smi' is not run: the branch counts as not taken, which is said as it sets something.
TEST(ShellScript, SaysWhichConditionsItDoesNotKnow) {
  const ScriptCommands found = commands_of(
      "TP=2\nif nvidia-smi | grep -q H100; then TP=8; fi\nif [ -d out ]; then echo old; fi\nrun "
      "$TP\n");
  ASSERT_EQ(found.commands.size(), 3U);  // those of the condition, too
  EXPECT_EQ(found.commands[2].words[1], "2");
  ASSERT_EQ(found.warnings.size(), 1U);
  EXPECT_NE(found.warnings[0].find("line 2: whether 'nvidia-smi"), std::string::npos);
}

TEST(ShellScript, ReadsOnlyWhatIsStarted) {
  EXPECT_EQ(
      commands(
          "# run a\necho \"usage: run --tp N\"\ncat <<EOF > f\nrun b\nEOF\nrun c 2>&1 | tee log\n"),
      "run|c\ntee|log\n");
  EXPECT_EQ(commands("C=\"run a $X\"\necho $C\neval $C\nbash -c \"cd d; run b\"\nsrun -N 2 bash -x "
                     "-c 'run c'\n"),
            "run|a|$X\nrun|b\nrun|c\n");
  EXPECT_EQ(commands("X=1\nsbatch <<EOF\n#SBATCH --nodes=2\nsrun run --x $X\nEOF\n"),
            "srun|run|--x|1\nsbatch\n");
}

TEST(ShellScript, CallsItsFunctionsAndTurnsItsLoops) {
  EXPECT_EQ(commands("f() {\n  local tp=$1\n  shift\n  run --tp $tp $#  \"$@\"\n}\nf 4 a 'b c'\n"),
            "run|--tp|4|2|a|b c\n");
  EXPECT_EQ(commands("for t in 1 2; do\n  [ $t = 2 ] && break\n  run $t\ndone\nwhile read x; do "
                     "run y; done\n"),
            "run|1\n");
  EXPECT_EQ(commands("if [ $# -lt 1 ]; then echo usage; exit 1; fi\nrun ${1:-8}\nexit 0\nrun z\n"),
            "run|8\n");
}

TEST(ShellScript, ReadsDocumentsIntoVariables) {
  EXPECT_EQ(
      commands("L=4\nread -r -d '' ARGS <<EOF || true\n--layers $L\n--bf16\nEOF\nrun $ARGS\n"),
      "run|--layers|4|--bf16\n");
  EXPECT_EQ(commands("read -r TP <<< 4\nread -r A <<'EOF'\n$X b\nc\nEOF\nrun $TP \"$A\"\n"),
            "run|4|$X b\n");
  EXPECT_EQ(commands("S='32 4096 x y'\nread -r L H REST <<< \"$S\"\nIFS=, read -ra A <<< '1,,3'\n"
                     "run $L $H \"$REST\" ${#A[@]} ${A[2]}\n"),
            "run|32|4096|x y|3|3\n");
  EXPECT_EQ(commands("A=()\nwhile read -r k v; do\n  [[ -z $k ]] && continue\n  A+=(\"--$k\" $v)\n"
                     "done <<EOF\nlayers 4\n\nbf16\nEOF\nrun \"${A[@]}\"\n"),
            "run|--layers|4|--bf16\n");
}

TEST(ShellScript, KnowsTables) {
  EXPECT_EQ(commands("declare -A S=( [8b]='32 4096' [\"70b\"]=80 )\nS[x]=1\nM=8b\nrun ${S[$M]} "
                     "\"${S[70b]}\" ${S[x]} ${#S[@]}\nA[1]=b\nrun ${A[1]} ${S[$NONE]}\n"),
            "run|32|4096|80|1|3\nrun|b|${S[$NONE]}\n");
}

TEST(ShellScript, TurnsLoopsWhoseConditionsAreKnown) {
  EXPECT_EQ(
      commands("for ((i = 0; i < 3; i++)); do run $i; done\nfor n in {2..4}; do run $n; done\n"),
      "run|0\nrun|1\nrun|2\nrun|2\nrun|3\nrun|4\n");
  EXPECT_EQ(
      commands("f() {\n  while [[ $# -gt 0 ]]; do\n    case $1 in\n      --tp) TP=$2; shift 2 ;;\n"
               "      *) shift ;;&\n    esac\n  done\n  run $TP\n}\nf --x --tp 4\n"),
      "run|4\n");
  EXPECT_EQ(
      commands("until run; do sleep 1; done\nwhile true; do go && break; done\nwhile [[ $# -gt "
               "0 ]]; do TP=$1; done\n"),
      "run\ngo\n");
}

TEST(ShellScript, ReadsWhatItsOwnCommandsPrint) {
  EXPECT_EQ(
      commands("h() {\n  echo \"of $1\" >&2\n  case $1 in 7b) echo 4096 ;; *) echo 1 ;; esac\n}\n"
               "H=$(h 7b)\nrun $H $(echo \"$H * 2\" | bc) `expr $H / 2` $(printf '%s-%d' a 3) "
               "\"$(seq 1 3)\" $(basename a/b.c)\n"),
      "run|4096|8192|2048|a-3|1\n2\n3|b.c\n");
  EXPECT_EQ(
      commands("X=1; Y=$(X=2; echo $X; go)\nZ=$(echo a | tr a b)\nprintf -v W 'n%d' 2\nrun $X "
               "$Y $Z $W\n"),
      "run|1|$(X=2;..)|$(echo..)|n2\n");
  EXPECT_EQ(commands("A=$(cat <<EOF\n--bf16 $1\n--tp 2\nEOF\n)\nset -- 8 9\nshift\nrun $A $1 $#\n"),
            "run|$(cat..)|9|1\n");
  EXPECT_EQ(commands("K=tp\ndeclare \"${K^^}=4\"\nrun $TP\n"), "run|4\n");
}

TEST(ShellScript, ChangesValues) {
  EXPECT_EQ(
      commands("M=llama-2-7B\nrun ${M,,} ${M^^} ${M##*-} ${M%%-*} ${M%-*} ${M/-2/3} ${M//-/_} "
               "${M:6:1} ${M: -2} ${#M}\nN=M\nrun ${!N} ${M/[a-z]/x}\n"),
      "run|llama-2-7b|LLAMA-2-7B|7B|llama|llama-2|llama3-7B|llama_2_7B|2|7B|10\n"
      "run|llama-2-7B|${M/[a-z]/x}\n");
}

TEST(ShellScript, KnowsWhereItIs) {
  const IncludedFile files = [](const std::string& path) -> std::optional<std::string> {
    if (path == "/a/b/env.sh") return "TP=4\n";
    return path == "go.sh" ? std::optional<std::string>("run $TP $1 $#\n") : std::nullopt;
  };
  const std::string script =
      "D=\"$( cd \"$( dirname \"${BASH_SOURCE[0]}\" )\" >/dev/null 2>&1 && pwd )\"\n"
      "source ${D}/env.sh\nE=$(dirname \"$0\")/..\nrun $TP $(realpath $E)\nTP=8\nbash -x go.sh "
      "7b\n";
  std::string out;
  for (const auto& command : commands_of(script, files, "/a/b/x.sh").commands)
    out += fmt::format("{}\n", fmt::join(command.words, "|"));
  EXPECT_EQ(out, "run|4|/a\nrun|8|7b|1\n");
  const ScriptCommands guessed = commands_of("source $HERE/go.sh\n", files);
  ASSERT_EQ(guessed.warnings.size(), 1U);
  EXPECT_EQ(guessed.warnings[0], "line 1: '$HERE/go.sh' is taken from the script's own folder");
  EXPECT_EQ(guessed.commands.size(), 1U);
}

TEST(ShellScript, FollowsScriptsThatItWrites) {
  EXPECT_EQ(
      commands("N=4\ncat > job_$N.sh <<EOF\nsrun run --nodes $N \\$X\nEOF\nsbatch job_$N.sh\n"),
      "srun|run|--nodes|4|$X\n");
}

TEST(ShellScript, IncludesFiles) {
  const IncludedFile files = [](const std::string& path) -> std::optional<std::string> {
    return path == "env.sh" ? std::optional<std::string>("TP=4\n") : std::nullopt;
  };
  EXPECT_EQ(commands("source env.sh\n. other.sh\nrun $TP\n", files), "run|4\n");
  EXPECT_EQ(commands_of(". other.sh\nrun\n", files).warnings.at(0),
            "line 1: 'other.sh' is not read: there is no such file");
}

TEST(ShellScript, WhatIsNotKnownStaysAsItIs) {
  EXPECT_EQ(commands("N=$(nvidia-smi -L | wc -l)\nrun $N $1 ${HOSTS[0]} `hostname -s` ${X%%.*}\n"),
            "run|$(nvidia-smi..)|$1|${HOSTS[0]}|$(hostname..)|${X%%.*}\n");
}

TEST(ShellScript, RefusesWhatItCannotFollow) {
  for (const char* text :
       {"run 'a", "if true; then run", "run $(a", "A=(1", "[[ a", "case x in", "fi", "run )",
        "{ run", "for in 1", "cat <(", "f() { f; }; f", "X=aaaaaaaaaa; while [ 1 ]; do"})
    EXPECT_THROW(commands_of(text), ScriptFault) << text;
  std::string doubled = "X=0123456789abcdef\n";
  for (int i = 0; i < 40; ++i) doubled += "X=$X$X\n";
  EXPECT_THROW(commands_of(doubled), ScriptFault);
  EXPECT_THROW(
      commands_of(
          "f() { for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do $1; done; done; }\n"
          "g() { f f2; }\nf2() { f f3; }\nf3() { f run; }\ng\n"),
      ScriptFault);
}

}  // namespace
}  // namespace plait
